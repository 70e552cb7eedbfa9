"""Requests that are nearly right: every API and version, cut, extended, flooded and lied to over a real socket."""

import struct
import time

import pytest

from headrace.broker.dispatch import load_apis
from headrace.model.errors import ErrorCode
from headrace.wire.apis import APIS
from headrace.wire.codec import decode_response
from headrace.wire.header import request_header
from headrace.wire.messages.metadata import MetadataRequest
from hostile.valid_requests import served_versions, valid_request
from wire_client import KEYS, WireClient

pytestmark = pytest.mark.slow

SOON_S = 1.0
MIB = 1 << 20
METADATA, PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS = 3, 0, 1, 18, 19


def is_refused(port: int, frame: bytes) -> bool:
    """Whether a request ends its connection, without an answer and within a second."""
    with WireClient(port) as client:
        begin = time.monotonic()
        client.send_frame(frame)
        return client.is_closed_by_broker() and time.monotonic() - begin < SOON_S


def topics_of(port: int) -> set[str]:
    """All topics there are."""
    with WireClient(port) as client:
        return {topic.name for topic in client.ask("Metadata", 12, MetadataRequest(topics=None)).topics}


@pytest.fixture
def described(target, guarded):
    """The guarded topic's name and id, for requests about it."""
    with WireClient(target.port) as client:
        return {"topic": guarded, "topic_id": client.describe_topic(guarded).topic_id}


@pytest.mark.parametrize("key", sorted(load_apis()), ids=lambda key: APIS[key].name)
def test_truncated(target, neighbour, described, key):
    """Is a request that ends too early refused, wherever it ends, in every version?"""
    before = topics_of(target.port)
    for version in (version for served, version in served_versions() if served == key):
        request = valid_request(key, version, **described)
        size = len(request.body)
        for cut in sorted({0, 1, 2, size // 3, size // 2, size - 2, size - 1} & set(range(size))):
            if is_complete(key, version, request.body[:cut]):
                continue
            assert is_refused(target.port, request.head + request.body[:cut]), f"{request.name} cut at {cut}"
    assert topics_of(target.port) == before


def is_complete(key: int, version: int, body: bytes) -> bool:
    """Whether what is left happens to be a whole request: old ApiVersions requests have no body at all."""
    return key == API_VERSIONS and version < 3 and body == b""


@pytest.mark.parametrize("key", sorted(load_apis()), ids=lambda key: APIS[key].name)
def test_trailing_bytes(target, neighbour, described, key):
    """Is a request refused that goes on after its end, in every version?"""
    before = topics_of(target.port)
    for version in (version for served, version in served_versions() if served == key):
        request = valid_request(key, version, **described)
        for rest in (b"\x00" * 4, b"\x01", b"\xff" * 100, request.body or b"\x00"):
            if key == METADATA and len(rest) < 4:
                continue  # librdkafka leaves a few bytes behind a request for all topics
            assert is_refused(target.port, request.frame + rest), f"{request.name} + {rest[:8].hex()}"
    assert topics_of(target.port) == before


def test_truncated_header(target, neighbour, guarded):
    """Is a header that ends too early refused?"""
    for version in (1, 9, 12):
        head = request_header(METADATA, version, 7, "client")
        for cut in range(1, len(head)):
            assert is_refused(target.port, head[:cut]), (version, cut)


@pytest.mark.parametrize("key", [-1, -32768, 58, 999, 32767])
def test_unknown_api(target, neighbour, guarded, key):
    """Is an API nobody knows refused?"""
    assert is_refused(target.port, struct.pack(">hhih", key, 0, 7, -1) + b"\x00" * 10)


def test_apis_of_brokers_and_controllers(target, neighbour, guarded):
    """Are the APIs that only brokers and controllers use among themselves closed to a client of this listener?"""
    inner = set(APIS) - {key for key, api in load_apis().items() if api.on_brokers}
    names = ("LeaderAndIsr", "UpdateMetadata", "AlterPartition", "BrokerRegistration", "BrokerHeartbeat", "Vote")
    assert inner >= {KEYS[name] for name in names if name in KEYS}
    for key in sorted(inner):
        for version in (APIS[key].version_first, APIS[key].version_last):
            head = request_header(key, version, 7, "client")
            assert is_refused(target.port, head + b"\x00" * 40), (APIS[key].name, version)


@pytest.mark.parametrize("key", sorted(load_apis()), ids=lambda key: APIS[key].name)
def test_unserved_versions(target, neighbour, guarded, key):
    """Is every version outside those that are served refused, and ApiVersions answered in form 0 instead?"""
    api = load_apis()[key]
    for version in {-1, -32768, api.low - 1, api.high + 1, 99, 32767} - {api.low}:
        frame = struct.pack(">hhih", key, version, 7, -1) + b"\x00" * 20
        if key != API_VERSIONS:
            assert is_refused(target.port, frame), version
            continue
        with WireClient(target.port) as client:
            client.send_frame(frame)
            answer = client.receive_frame()
            body = decode_response(API_VERSIONS, 0, memoryview(answer), 4)
            assert struct.unpack_from(">i", answer) == (7,)
            assert body.error_code == ErrorCode.UNSUPPORTED_VERSION
            (served,) = [entry for entry in body.api_keys if entry.api_key == API_VERSIONS]
            assert (served.min_version, served.max_version) == (api.low, api.high)
            assert client.describe_topic(guarded).error_code == 0, "the connection goes on"


COUNTS = {"huge": 2**31 - 1, "large": 10_000_000, "negative": -2, "most negative": -(2**31)}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_arrays(target, neighbour, guarded, name):
    """Is an array that claims more elements than there are bytes refused, before anything is made of it?"""
    count = struct.pack(">i", COUNTS[name])
    bodies = {
        (METADATA, 0): count,  # in later versions any negative count is null, as Java reads it
        (PRODUCE, 3): struct.pack(">hhi", -1, -1, 1_000) + count,
        (FETCH, 4): struct.pack(">iiiib", -1, 0, 1, 1 << 20, 0) + count,
        (2, 1): struct.pack(">i", -1) + count,
        (CREATE_TOPICS, 2): count,
        (20, 1): count,
        (32, 1): count,
        (21, 0): count,
    }
    before = target.memory().anonymous_bytes
    for (key, version), body in bodies.items():
        for rest in (b"", b"\x00" * 64, b"\xff" * 64):
            assert is_refused(target.port, request_header(key, version, 7, None) + body + rest), (key, rest)
    assert target.memory().anonymous_bytes - before < 16 * MIB


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\x80\xad\xe2\x04"])
def test_compact_counts_of_arrays(target, neighbour, guarded, count):
    """The same for the counts of flexible versions: does it hold?"""
    for key, version, body in (
        (METADATA, 9, b""),
        (PRODUCE, 9, b"\x00" + struct.pack(">hi", -1, 1_000)),
        (FETCH, 12, struct.pack(">iiiibii", -1, 0, 1, 1 << 20, 0, 0, -1)),
        (CREATE_TOPICS, 5, b""),
    ):
        assert is_refused(target.port, request_header(key, version, 7, None) + body + count + b"\x00" * 64), key


def test_elements_of_a_flood(target, neighbour, guarded):
    """Is a request of millions of tiny elements refused soon, and cheaply?"""
    elements = 8 * MIB
    body = struct.pack(">i", elements // 2) + b"\x00" * elements
    before = target.memory().anonymous_bytes
    assert is_refused(target.port, request_header(METADATA, 1, 7, None) + body)
    compact = b"\x81\x80\x80\x02" + b"\x01" * elements
    assert is_refused(target.port, request_header(METADATA, 9, 7, None) + compact)
    assert target.memory().anonymous_bytes - before < 64 * MIB


def uvarint(number: int) -> bytes:
    """As the flexible versions write counts."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def tags(numbers) -> bytes:
    """A tag section of empty tags."""
    parts = [uvarint(number) + b"\x00" for number in numbers]
    return uvarint(len(parts)) + b"".join(parts)


def test_floods_of_tags(target, neighbour, guarded):
    """Are floods of unknown tags, in the header and in the body, refused soon and not kept (CVE-2026-111115)?"""
    flood = tags(range(10, 500_000))
    head = request_header(METADATA, 9, 7, None)[:-1]
    before = target.memory().anonymous_bytes
    for frame in (head + flood + b"\x00\x01\x00\x00\x00", head + b"\x00" + b"\x00\x01\x00\x00" + flood):
        assert is_refused(target.port, frame)
    assert target.memory().anonymous_bytes - before < 64 * MIB


BAD_TAGS = {
    "twice": tags([10, 10]),
    "falling": tags([11, 10]),
    "too long": uvarint(1) + uvarint(10) + uvarint(1_000),
    "longest": uvarint(1) + uvarint(10) + b"\xff\xff\xff\xff\x0f",
    "missing": uvarint(5),
    "number too large": uvarint(1) + b"\xff\xff\xff\xff\xff\x01" + b"\x00",
    "endless count": b"\xff" * 20,
}


@pytest.mark.parametrize("name", BAD_TAGS)
def test_bad_tags(target, neighbour, guarded, name):
    """Are tags refused that are out of order, too long, or not there?"""
    head = request_header(METADATA, 9, 7, None)[:-1]
    body = b"\x01\x00\x00\x00"

    assert is_refused(target.port, head + BAD_TAGS[name] + body + b"\x00")
    assert is_refused(target.port, head + b"\x00" + body + BAD_TAGS[name])


BAD_NAMES = {
    "not UTF-8": (b"\xc3\x28", b"\x03\xc3\x28"),
    "half a character": (b"\xe6\xbc", b"\x03\xe6\xbc"),
    "a lone surrogate": (b"\xed\xa0\x80", b"\x04\xed\xa0\x80"),
    "an overlong slash": (b"\xc0\xaf", b"\x03\xc0\xaf"),
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_no_text(target, neighbour, guarded, name):
    """Are topic names and client ids refused that are not UTF-8?"""
    raw, compact = BAD_NAMES[name]
    plain = struct.pack(">ih", 1, len(raw)) + raw

    assert is_refused(target.port, request_header(METADATA, 1, 7, None) + plain)
    assert is_refused(target.port, request_header(METADATA, 9, 7, None) + b"\x02" + compact + b"\x00" + b"\x00" * 4)
    assert is_refused(target.port, struct.pack(">hhih", METADATA, 1, 7, len(raw)) + raw + struct.pack(">i", 0))


@pytest.mark.parametrize("length", [-2, -32768, 32767, 200])
def test_lengths_of_strings(target, neighbour, guarded, length):
    """Are strings refused whose length is negative or beyond the end?"""
    body = struct.pack(">ih", 1, length) + b"name"

    assert is_refused(target.port, request_header(METADATA, 1, 7, None) + body)
    if length != -1:
        assert is_refused(target.port, struct.pack(">hhih", METADATA, 1, 7, length) + b"name")


@pytest.mark.parametrize(
    "length", [b"\xff\xff\xff\xff\xff\x01", b"\x80" * 10 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\xff"]
)
def test_varints(target, neighbour, guarded, length):
    """Are varints refused that do not end, or say more than 32 bits?"""
    assert is_refused(target.port, request_header(METADATA, 9, 7, None) + b"\x02" + length + b"name\x00" + b"\x00" * 4)
    assert is_refused(target.port, request_header(METADATA, 9, 7, None) + length)
