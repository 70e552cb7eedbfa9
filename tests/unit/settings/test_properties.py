from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.settings.fault import ConfigFault
from headrace.settings.properties import load_properties, parse_properties, write_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a \t = \t 1  ", {"a": "1  "}),
        ("a = = 1", {"a": "= 1"}),
        ("a=b=c:d e", {"a": "b=c:d e"}),
        ("a", {"a": ""}),
        ("=1", {"": "1"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("# a=1\n ! b=2\n\n\t\nc=3", {"c": "3"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("a=1,\\\n    2,\\\n\t3", {"a": "1,2,3"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=x\\\\\\\n  y", {"a": "x\\y"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n# still a comment\na=1", {"a": "1"}),
        ("\\\n\na=1", {"a": "1"}),
        ("\\", {"": ""}),
        ("\\\n", {"": ""}),
        ("\\\n\n", {}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=\\ 1", {"a": " 1"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("\\u0061=1", {"a": "1"}),
        ("a=\x0b1", {"a": "\x0b1"}),
        ("a=1\x85b=2", {"a": "1\x85b=2"}),
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    """Are separators, comments, joined lines and escapes understood as java.util.Properties does?"""
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u 123"])
def test_a_malformed_escape_is_refused(text: str) -> None:
    r"""Is a broken \u escape an error rather than a silent letter?"""
    with pytest.raises(ConfigFault, match="malformed escape"):
        parse_properties(text)


def test_a_missing_file_is_one_clear_sentence(tmp_path: Path) -> None:
    """Does a wrong path say which file and what to do?"""
    with pytest.raises(ConfigFault) as caught:
        load_properties(tmp_path / "no.properties")

    assert caught.value.problem == f"Cannot read {tmp_path / 'no.properties'}: No such file or directory"
    assert caught.value.remedy == "Give the path of a properties file that exists."


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    """Does a path to a directory give a sentence and not a traceback?"""
    with pytest.raises(ConfigFault, match="Is a directory"):
        load_properties(tmp_path)


def test_a_fault_in_a_file_names_the_file(tmp_path: Path) -> None:
    """Does a broken escape say in which file it is?"""
    path = tmp_path / "x.properties"
    path.write_text("a=\\uzzzz")

    with pytest.raises(ConfigFault, match=r"Cannot read .*x\.properties: malformed escape"):
        load_properties(path)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_both_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    """Is a file read right whether it was written as UTF-8 or, as Java wants it, as Latin-1?"""
    path = tmp_path / "x.properties"
    path.write_bytes("log.dirs=/données".encode(encoding))

    assert load_properties(path) == {"log.dirs": "/données"}


texts = st.text(st.characters(blacklist_categories=["Cs"]))


@given(st.dictionaries(texts, texts))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str]) -> None:
    """Does every key and value survive a file, whatever characters it has?"""
    path = tmp_path_factory.getbasetemp() / "round-trip.properties"
    write_properties(path, properties, comment="first\nsecond")

    assert load_properties(path) == properties
    assert path.read_bytes().isascii()


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Does no file, however broken, end in anything but settings or a ConfigFault?"""
    try:
        parse_properties(text)
    except ConfigFault as fault:
        assert "malformed escape" in fault.problem  # noqa: PT017
