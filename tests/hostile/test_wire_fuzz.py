"""Every decoder of `wire`, fed what no honest peer sends: it reads it or says MalformedRequest, soon and cheaply."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS, Api
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.fetch import parse_fetch
from headrace.wire.header import parse_request_header, parse_response_header, request_header
from headrace.wire.messages import metadata_records
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.wire.produce import parse_produce
from headrace.wire.schema import Message, load_messages

Decoder = Callable[[memoryview], object]

VALUES = {"string": "text", "bytes": b"bytes", "records": b"records", "uuid": UUID(int=7), "bool": True, "float64": 1.5}
PIECES = (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\xc3\x28")
FLOODS = (b"\x00", b"\x01", b"\x02", b"\x7f", b"\xff", b"\x00\x00\x00\x01", b"\x02\x61", b"\x01\x02\x03\x04")


def filled(message: Message, name: str, classes: Any) -> Any:
    """A message in which every field has a value and every array two elements."""
    values = {}
    for field in message.structs[name]:
        value = filled(message, field.type, classes) if field.is_struct else VALUES.get(field.type, 1)
        values[field.name] = (value, value) if field.is_array else value
    return getattr(classes, name)(**values)


def tolerate(decode: Decoder, data: bytes) -> bool:
    """Whether `data` decodes; anything but a value or MalformedRequest flies."""
    try:
        decode(memoryview(bytearray(data)))
    except MalformedRequest:
        return False
    return True


def mutations(data: bytes, chance: random.Random, count: int) -> Iterator[bytes]:
    """The message with a piece overwritten, inserted or removed, cut short, or repeated."""
    for _ in range(count):
        at = chance.randrange(len(data) + 1)
        piece = chance.choice(PIECES)
        yield chance.choice(
            (
                data[:at] + piece + data[at + len(piece) :],
                data[:at] + piece + data[at:],
                data[:at] + data[at + chance.randrange(1, 9) :],
                data[:at] + data[max(0, at - chance.randrange(20)) :],
                data[:at],
            )
        )


def codecs(api: Api, version: int) -> Iterator[tuple[Decoder, bytes]]:
    """The decoders of one API and version, each with a message it reads."""
    classes = import_module(f"headrace.wire.messages.{api.module}")
    request, response = load_messages(api.module)
    key = api.key
    question = encode_request(key, version, filled(request, request.name, classes))
    answer = encode_response(key, version, filled(response, response.name, classes))
    yield lambda view: decode_request(key, version, view), question
    yield lambda view: decode_response(key, version, view), answer
    if key in {0, 1}:
        parse = parse_fetch if key else parse_produce
        yield lambda view: parse(view, 0, version), question


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_damaged_messages_are_read_or_malformed(api: Api) -> None:
    """Does damage to a real message ever end in anything but MalformedRequest, in any version?"""
    chance = random.Random(api.key)
    for version in range(api.version_first, api.version_last + 1):
        for decode, data in codecs(api, version):
            assert tolerate(decode, data)
            refused = [not tolerate(decode, damaged) for damaged in mutations(data, chance, 60)]
            assert len(data) < 8 or any(refused)


@pytest.mark.parametrize("name", ["produce", "fetch"])
def test_codec_and_hand_written_parser_refuse_the_same(name: str) -> None:
    """Is there damage that one of the two ways to read a request lets through?"""
    key, parse = {"produce": (0, parse_produce), "fetch": (1, parse_fetch)}[name]
    chance = random.Random(name)
    api = APIS[key]
    for version in range(api.version_first, api.version_last + 1):
        _, data = next(codecs(api, version))
        for damaged in mutations(data, chance, 300):
            generic = tolerate(lambda view, version=version: decode_request(key, version, view), damaged)
            by_hand = tolerate(lambda view, version=version: parse(view, 0, version), damaged)
            # By hand, a partition's tags are skipped without a look inside: it may accept a little more, never less.
            assert by_hand or not generic, damaged.hex()


@given(st.binary(max_size=300), st.sampled_from(sorted(APIS)), st.integers(0, 1_000))
@settings(max_examples=1_000, deadline=None, derandomize=True)
def test_random_bytes_are_read_or_malformed(data: bytes, api_key: int, number: int) -> None:
    """Does noise ever end in anything but MalformedRequest?"""
    api = APIS[api_key]
    version = api.version_first + number % (api.version_last - api.version_first + 1)

    tolerate(lambda view: decode_request(api_key, version, view), data)
    tolerate(lambda view: decode_response(api_key, version, view), data)
    tolerate(lambda view: parse_produce(view, 0, 3 + number % 11), data)
    tolerate(lambda view: parse_fetch(view, 0, 4 + number % 15), data)
    tolerate(parse_request_header, data)
    tolerate(lambda view: parse_response_header(api_key, version, view), data)
    tolerate(decode_metadata_record, data)


def test_damaged_headers_are_read_or_malformed() -> None:
    """Does damage to a header ever end in anything but MalformedRequest?"""
    chance = random.Random(1)
    for version in (8, 9):
        head = request_header(3, version, 77, "client-1")
        for damaged in mutations(head, chance, 2_000):
            tolerate(parse_request_header, damaged)


def test_damaged_metadata_records_are_read_or_malformed() -> None:
    """Does damage to a metadata record ever end in anything but MalformedRequest?"""
    chance = random.Random(2)
    for message in load_messages("metadata_records"):
        for version in range(message.versions.first, message.versions.last + 1):
            data = encode_metadata_record(filled(message, message.name, metadata_records), version)
            assert tolerate(decode_metadata_record, data)
            for damaged in mutations(data, chance, 200):
                tolerate(decode_metadata_record, damaged)


@pytest.mark.parametrize("flood", FLOODS, ids=bytes.hex)
def test_floods_cost_no_more_than_a_multiple_of_their_size(flood: bytes) -> None:
    """Can a peer make us hold far more memory than it sends, with counts, tags or nesting?"""
    data = flood * (20_000 // len(flood))
    for api in APIS.values():
        for decode, _ in codecs(api, api.version_last):
            tracemalloc.start()
            try:
                tolerate(decode, data)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak < 300 * len(data), api.name
