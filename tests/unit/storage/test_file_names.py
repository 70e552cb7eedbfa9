"""Are Kafka's file names written and read as Kafka does, and others left alone?"""

import pytest

from headrace.storage.file_names import FileName, file_name, parse_file_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("00000000000000000042.log", FileName(42, ".log", "")),
        ("00000000000000000042.timeindex.cleaned", FileName(42, ".timeindex", ".cleaned")),
        ("09223372036854775807.txnindex.swap", FileName(2**63 - 1, ".txnindex", ".swap")),
        ("00000000000000000000.snapshot", FileName(0, ".snapshot", "")),
        ("00000000000000000000.index.deleted", FileName(0, ".index", ".deleted")),
    ],
)
def test_names_and_back(name, parts):
    """Does a name mean its parts, and do the parts make the name?"""
    assert parse_file_name(name) == parts
    assert file_name(*parts) == name


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "42.log",
        "00000000000000000042.log.tmp",
        "00000000000000000042.log\n",
        "09223372036854775808.log",
        "99999999999999999999.log",
        "0000000000000000004x.log",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢.log",
        "00000000000000000042",
    ],
)
def test_other_names(name):
    """Is a name that is not ours left alone, however near it comes?"""
    assert parse_file_name(name) is None
