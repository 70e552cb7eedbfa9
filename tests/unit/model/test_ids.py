from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.ids import ZERO_ID, decode_uuid, encode_uuid, topic_name_fault, usable_uuid


@pytest.mark.parametrize("name", ["a", "trucks_gps", "a.b-c_D9", "...", "x" * 249, "__consumer_offsets"])
def test_a_legal_topic_name_has_no_fault(name: str) -> None:
    """Is every name accepted that Kafka accepts?"""
    assert topic_name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a/b", "one or more characters other than"),
        ("../etc", "one or more characters other than"),
        ("a\n", "one or more characters other than"),
        ("a\x00b", "one or more characters other than"),
        ("größe", "one or more characters other than"),
        ("٣", "one or more characters other than"),
    ],
)
def test_an_illegal_topic_name_is_told_why(name: str, reason: str) -> None:
    """Is a name that could escape its directory, or that Kafka refuses, refused with the reason?"""
    fault = topic_name_fault(name)

    assert fault is not None
    assert reason in fault


@given(st.uuids())
def test_a_uuid_survives_its_text(value: UUID) -> None:
    """Is Kafka's 22-character form read back as the same id?"""
    text = encode_uuid(value)

    assert len(text) == 22
    assert decode_uuid(text) == value


def test_the_text_of_a_uuid_is_kafkas() -> None:
    """Is the text the one Kafka prints, URL-safe and without padding?"""
    assert encode_uuid(ZERO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert encode_uuid(UUID(int=2**128 - 1)) == "_____________________w"


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 24])
def test_what_is_no_uuid_is_refused(text: str) -> None:
    """Is text of the wrong length refused rather than padded?"""
    with pytest.raises(ValueError):  # noqa: PT011
        decode_uuid(text)


@pytest.mark.parametrize(("number", "usable"), [(0, False), (1, False), (100, False), (101, True)])
def test_reserved_ids_are_not_usable(number: int, usable: bool) -> None:
    """Are the first hundred ids, which Kafka keeps for itself, never handed out?"""
    assert usable_uuid(UUID(int=number)) is usable


def test_an_id_that_looks_like_a_flag_is_not_usable() -> None:
    """Is an id avoided whose text a command line would take for an option?"""
    flag = decode_uuid("-" + "A" * 21)

    assert encode_uuid(flag).startswith("-")
    assert not usable_uuid(flag)
