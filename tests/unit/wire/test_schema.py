"""The form schemas are written in, and codecs compiled from one that belongs to no API."""

import struct
from uuid import UUID

import pytest
from msgspec import Struct

from headrace.model.errors import MalformedRequest
from headrace.model.ids import ZERO_ID
from headrace.wire.codec import decode, encode
from headrace.wire.compiler import compile_reader, compile_writer, reader_source, writer_source
from headrace.wire.schema import NO_VERSIONS, Field, Versions, load_messages, parse_schema, parse_versions

TEXT = """\
# A message of nobody.
message Pet key 7 versions 0-2 flexible 1+
    name    string   0+
    owner   Owner    1+  null 1+ = null
    toys    []Toy    0+  null 2+
    weight  float64  0+
    old     bool     0-1
    scores  []int16  0+
    note    string   2+  null 2+ tag 3 = "none"
    level   uint32   1+  tag 1 = 4

struct Owner
    id      uuid     1+

struct Toy
    data    bytes    0+
"""


class Owner(Struct, frozen=True):
    id: UUID = ZERO_ID


class Toy(Struct, frozen=True):
    data: bytes = b""


class Pet(Struct, frozen=True):
    name: str = ""
    owner: Owner | None = None
    toys: tuple[Toy, ...] | None = ()
    weight: float = 0.0
    old: bool = False
    scores: tuple[int, ...] = ()
    note: str | None = "none"
    level: int = 4


CLASSES = {"Pet": Pet, "Owner": Owner, "Toy": Toy}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("3", Versions(3, 3)), ("0-5", Versions(0, 5)), ("4+", Versions(4, 32767)), ("none", NO_VERSIONS)],
)
def test_versions_are_read(word: str, expected: Versions) -> None:
    """Are all spellings of a range of versions understood?"""
    assert expected == parse_versions(word)


def test_a_text_is_read() -> None:
    """Does every word of a field line reach its place?"""
    (pet,) = parse_schema(TEXT)

    assert ("Pet", 7, Versions(0, 2), Versions(1, 32767)) == pet[:4]
    assert list(pet.structs) == ["Pet", "Owner", "Toy"]
    fields = {field.name: field for field in pet.structs["Pet"]}
    every, from_2 = Versions(0, 32767), Versions(2, 32767)
    assert Field("toys", "Toy", True, every, from_2, None, None, False) == fields["toys"]
    assert Field("note", "string", False, from_2, from_2, 3, "none", True) == fields["note"]
    assert Field("old", "bool", False, Versions(0, 1), NO_VERSIONS, None, None, False) == fields["old"]


@pytest.mark.parametrize(
    "line",
    ["message Pet", "message Pet key x versions 0 flexible 0+", "message Pet kee 7 versions 0 flexible 0+", "struct"]
    + [f"message Pet key 7 versions 0 flexible 0+\n    {field}" for field in ("a", "a int8 x", "a int8 0+ what 3")],
)
def test_a_wrong_line_is_named(line: str) -> None:
    """Does a slip in a hand-written text say where it is?"""
    with pytest.raises(ValueError, match="is no schema"):
        parse_schema(line)


TWO = struct.pack(">d", 2.0)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, b"\0\x02ab\0\0\0\x01\0\0\0\x01x" + TWO + b"\x01\0\0\0\x02\0\x05\xff\xff"),
        (1, b"\x03ab\xff\x02\x02x\0" + TWO + b"\x01\x03\0\x05\xff\xff\x01\x01\x04\0\0\0\x09"),
        (2, b"\x03ab\xff\x02\x02x\0" + TWO + b"\x03\0\x05\xff\xff\x02\x01\x04\0\0\0\x09\x03\x01\0"),
    ],
)
def test_a_schema_of_no_api_becomes_a_codec(version: int, expected: bytes) -> None:
    """Are the bytes of each version those one would write by hand?"""
    (message,) = parse_schema(TEXT)
    pet = Pet(name="ab", toys=(Toy(b"x"),), weight=2.0, old=True, scores=(5, -1), note=None, level=9)

    data = encode(compile_writer(message, version, CLASSES), pet)

    assert expected == data
    seen = decode(compile_reader(message, version, CLASSES), data)
    assert (pet.name, pet.toys, pet.weight, pet.scores) == (seen.name, seen.toys, seen.weight, seen.scores)
    assert (version < 2, 9 if version else 4, None if version == 2 else "none") == (seen.old, seen.level, seen.note)


def test_a_nullable_struct_is_marked_by_a_byte() -> None:
    """Are both states of a nullable struct kept (KIP-893)?"""
    (message,) = parse_schema(TEXT)
    read, write = compile_reader(message, 2, CLASSES), compile_writer(message, 2, CLASSES)
    for pet in (Pet(toys=None), Pet(owner=Owner(UUID(int=2**127 + 5)), toys=())):
        assert pet == decode(read, encode(write, pet))
    # As in Kafka, only the sign of the byte counts.
    present = bytearray(encode(write, Pet(owner=Owner())))
    present[1] = 127
    assert decode(read, present) == Pet(owner=Owner())
    with pytest.raises(MalformedRequest):
        decode(read, b"\x01\x01")


def test_the_made_text_is_what_one_would_write() -> None:
    """Can a person read what is compiled for a message?"""
    (message,) = (message for message in load_messages("heartbeat") if message.name == "HeartbeatResponse")

    assert reader_source(message, 1).splitlines() == [
        "def read_HeartbeatResponse(view, at, budget):",
        "    v_throttle_time_ms, v_error_code, = fixed_ih(view, at)",
        "    at += 6",
        "    return HeartbeatResponse(throttle_time_ms=v_throttle_time_ms, error_code=v_error_code), at",
    ]
    assert writer_source(message, 1).splitlines() == [
        "def write_HeartbeatResponse(out, message):",
        "    out += fixed_ih(message.throttle_time_ms, message.error_code)",
    ]


def test_what_nearly_every_message_has_is_written_without_a_call() -> None:
    """Are fixed elements, short counts and the sign for no tags where they stand, and one tag of known size too?"""
    (commits,) = (message for message in load_messages("offset_commit") if message.name == "OffsetCommitResponse")
    (offset,) = (message for message in load_messages("group_records") if message.name == "OffsetCommitValue")

    assert writer_source(commits, 9).splitlines()[2:9] == [
        "def write_OffsetCommitResponseTopic(out, message):",
        '    out.append(1) if message.name == "" else write_compact_string(out, message.name)',
        "    items = message.partitions",
        "    count = len(items) + 1",
        "    out.append(count) if count < 128 else write_uvarint(out, count)",
        "    for item in items:",
        "        out += fixed_ihx(item.partition_index, item.error_code)",
    ]
    assert writer_source(offset, 4).splitlines()[-5:] == [
        "    if message.topic_id.int == default_OffsetCommitValue.topic_id.int:",
        "        out.append(0)",
        "    else:",
        r"        out += b'\x01\x00\x10'",
        "        out += message.topic_id.int.to_bytes(16, 'big')",
    ]
    assert reader_source(commits, 9).splitlines()[3] == "    at = skip_tags(view, at, budget) if view[at] else at + 1"


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 300])
def test_any_number_of_elements_comes_back(count: int) -> None:
    """Is a count told right on both sides of what one byte can say?"""
    (message,) = parse_schema(TEXT)
    pet = Pet(toys=tuple(Toy(b"x") for _ in range(count)))

    assert pet == decode(compile_reader(message, 2, CLASSES), encode(compile_writer(message, 2, CLASSES), pet))


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 128, 0x7FFF])
def test_texts_of_any_length_come_back(length: int) -> None:
    """Is a text told right on both sides of what one byte of length can say?"""
    (message,) = parse_schema(TEXT)
    pet = Pet(name="x" * length)

    data = encode(compile_writer(message, 2, CLASSES), pet)

    assert pet == decode(compile_reader(message, 2, CLASSES), data)
    for cut in {0, 1, length // 2, length} - {length + 1}:
        with pytest.raises(MalformedRequest):
            decode(compile_reader(message, 2, CLASSES), data[:cut])
