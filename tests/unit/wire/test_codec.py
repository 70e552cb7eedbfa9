"""Whole messages: every API and version beside kio, and everything that is no message."""

import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS, Api
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response, frame_response
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.describe_producers import DescribeProducersRequest
from headrace.wire.messages.describe_producers import TopicRequest as DescribeProducersTopic
from headrace.wire.messages.fetch import FetchRequest, ReplicaState
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.primitives import NUMBERS_MAX, OBJECTS_MAX

METADATA, API_VERSIONS, FETCH, LIST_OFFSETS, DESCRIBE_PRODUCERS = 3, 18, 1, 2, 61


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_of_every_api_agrees_with_kio(api: Api, sample: Callable[..., Any]) -> None:
    """Do we read what kio writes as the same values, and write these as the same bytes?"""
    for version in range(api.version_first, api.version_last + 1):
        for seed in range(4):
            data, ours = sample(api.key, version, "request", seed)
            assert ours == decode_request(api.key, version, memoryview(data)), f"request v{version} seed {seed}"
            assert data == encode_request(api.key, version, ours), f"request v{version} seed {seed}"
            data, ours = sample(api.key, version, "response", seed)
            assert ours == decode_response(api.key, version, memoryview(data)), f"response v{version} seed {seed}"
            assert data == encode_response(api.key, version, ours), f"response v{version} seed {seed}"


def test_all_apis_kio_knows_are_here() -> None:
    """Is the table whole, with the ranges Kafka 4.x has?"""
    assert len(APIS) == 89
    assert APIS[0][3:] == (3, 13, 9)
    assert APIS[FETCH][3:] == (4, 18, 12)
    assert APIS[API_VERSIONS][3:] == (0, 4, 3)


def test_a_framed_response_is_its_length_its_header_and_its_body() -> None:
    """Does a frame hold what was to be in it, and say how long that is?"""
    message = ApiVersionsResponse(error_code=35)
    expected = b"head" + encode_response(API_VERSIONS, 3, message)

    assert struct.pack(">i", len(expected)) + expected == frame_response(API_VERSIONS, 3, message, b"head")


def test_the_position_may_be_anywhere() -> None:
    """Can a body be read behind a header, in a buffer that is not its own?"""
    message = MetadataRequest(topics=(MetadataRequestTopic(name="a"),))
    data = b"header" + encode_request(METADATA, 9, message)

    assert message == decode_request(METADATA, 9, memoryview(bytearray(data)), 6)


@pytest.mark.parametrize("version", [1, 9, 12, 13])
def test_a_message_cut_anywhere_is_malformed(version: int) -> None:
    """Is every proper prefix of a message refused, and the message with one byte more?"""
    topics = tuple(MetadataRequestTopic(name=f"topic-{number}") for number in range(3))
    data = encode_request(METADATA, version, MetadataRequest(topics=topics))

    for end in range(len(data)):
        with pytest.raises(MalformedRequest):
            decode_request(METADATA, version, data[:end])
    with pytest.raises(MalformedRequest):
        decode_request(METADATA, version, data + b"\0")


@pytest.mark.parametrize(
    ("version", "data", "reason"),
    [
        pytest.param(1, struct.pack(">i", 900_000), "elements announced", id="count beyond the bytes left"),
        pytest.param(0, struct.pack(">i", -1), "null", id="null array where there is no null"),
        pytest.param(1, struct.pack(">ih", 1, -1), "null", id="null string where there is no null"),
        pytest.param(1, struct.pack(">ih", 1, 5) + b"abc", "bytes announced", id="string beyond the bytes left"),
        pytest.param(1, struct.pack(">ih", 1, 2) + b"\xc3\x28", "utf-8", id="bad UTF-8"),
        pytest.param(9, b"\xa0\xf7\x36", "elements announced", id="compact count beyond the bytes left"),
        pytest.param(9, b"\xff\xff\xff\xff\x7f", "varint", id="varint beyond 32 bits"),
        pytest.param(9, b"\x80\x80\x80\x80\x80\x01", "varint", id="varint of six bytes"),
        pytest.param(9, b"\x02\x00\x00\0\0\0\0", "null", id="compact null string where there is no null"),
        pytest.param(9, b"\x02\x81\x80\x02" + b"a" * 40_000, "string of", id="string longer than any"),
        pytest.param(9, b"\x01\0\0\0\xff\xff\xff\xff\x0f", "tagged fields", id="more tags than there may be"),
        pytest.param(9, b"\x01\0\0\0\x01\x05\x7f", "bytes announced", id="tag beyond the bytes left"),
        pytest.param(9, b"\x01\0\0\0\x02\x05\x00\x04\x00", "tag 4 after tag 5", id="tags that fall"),
        pytest.param(9, b"\x01\0\0\0\x02\x05\x00\x05\x00", "tag 5 after tag 5", id="one tag twice"),
    ],
)
def test_wrong_bytes_are_malformed(version: int, data: bytes, reason: str) -> None:
    """Is each way of being wrong refused, and called by its name?"""
    with pytest.raises(MalformedRequest, match=reason):
        decode_request(METADATA, version, data)


@pytest.mark.parametrize("version", [11, 12, 13])
def test_librdkafkas_request_for_all_topics_is_understood(version: int) -> None:
    """Is the null list of a flexible Metadata request also taken in four bytes, and nothing else too long?"""
    too_long = b"\0\0\0\0" + b"\x01\0\0"

    assert decode_request(METADATA, version, too_long).topics is None
    with pytest.raises(MalformedRequest, match="after the end"):
        decode_request(METADATA, version, too_long + b"\0")


@pytest.mark.parametrize("api_key", [-1, 4, 1000])
def test_an_unknown_api_is_malformed(api_key: int) -> None:
    """Is a body of which we know nothing refused, whoever lets it through?"""
    with pytest.raises(MalformedRequest):
        decode_request(api_key, 0, b"")


@pytest.mark.parametrize("version", [-1, 14])
def test_an_unknown_version_is_malformed(version: int) -> None:
    """Are versions around those we know refused?"""
    with pytest.raises(MalformedRequest):
        decode_request(METADATA, version, b"\0" * 10)


def test_array_elements_are_limited_over_the_whole_message() -> None:
    """Can several arrays together hold more than one array may?"""

    # DescribeGroups v5: an array of strings, one byte each when empty.
    def request(count: int) -> bytes:
        return _uvarint(count + 1) + b"\x01" * count + b"\0\0"

    assert len(decode_request(15, 5, request(OBJECTS_MAX)).groups) == OBJECTS_MAX
    with pytest.raises(MalformedRequest):
        decode_request(15, 5, request(OBJECTS_MAX + 1))


def test_numbers_have_a_limit_of_their_own() -> None:
    """May a request hold more plain numbers than objects, and still not any number of them, in one array or many?"""

    def request(*counts: int) -> bytes:
        topics = (DescribeProducersTopic(name="t", partition_indexes=tuple(range(count))) for count in counts)
        return encode_request(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=tuple(topics)))

    half = NUMBERS_MAX // 2
    assert len(decode_request(DESCRIBE_PRODUCERS, 0, request(half, half)).topics) == 2
    for counts in ((NUMBERS_MAX + 1,), (half, half, 1)):
        with pytest.raises(MalformedRequest, match="more elements allowed"):
            decode_request(DESCRIBE_PRODUCERS, 0, request(*counts))


def test_where_an_element_is_dear_fewer_are_allowed() -> None:
    """Is a request that the controller must decide on topic by topic held to a smaller limit?"""

    def request(count: int) -> bytes:
        topics = (CreatePartitionsTopic(name="t", count=2, assignments=None) for _ in range(count))
        return encode_request(37, 3, CreatePartitionsRequest(topics=tuple(topics), timeout_ms=1))

    assert len(decode_request(37, 3, request(20_000)).topics) == 20_000
    with pytest.raises(MalformedRequest, match="20000 more elements allowed"):
        decode_request(37, 3, request(20_001))


@pytest.mark.parametrize("version", [1, 10])
def test_a_large_cluster_is_no_attack(version: int) -> None:
    """Are 20,000 partitions understood in one request, each alone in its topic?"""
    topics = tuple(
        ListOffsetsTopic(name=f"topic-{number}", partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),))
        for number in range(20_000)
    )
    request = ListOffsetsRequest(replica_id=-1, topics=topics)

    assert topics == decode_request(LIST_OFFSETS, version, encode_request(LIST_OFFSETS, version, request)).topics


def test_answers_may_be_larger_than_requests() -> None:
    """Can the answer about a cluster be read that holds more than a request may?"""
    partitions = (MetadataResponsePartition(replica_nodes=(1, 2, 3), isr_nodes=(1, 2, 3)),) * (OBJECTS_MAX + 1)
    answer = MetadataResponse(topics=(MetadataResponseTopic(name="t", partitions=partitions),))

    assert answer == decode_response(METADATA, 9, encode_response(METADATA, 9, answer))


def test_tags_are_limited_over_the_whole_message() -> None:
    """Can tags be spread over many structs to escape their limit?"""
    # Each topic carries 101 unknown tags; a hundred such topics are over ten thousand.
    tags = _uvarint(101) + b"".join(_uvarint(tag) + b"\0" for tag in range(7, 108))
    topic = b"\x02a" + tags
    data = _uvarint(101) + topic * 100 + b"\0\0\0\0"

    with pytest.raises(MalformedRequest, match="tagged"):
        decode_request(METADATA, 9, data)
    assert len(decode_request(METADATA, 9, _uvarint(91) + topic * 90 + b"\0\0\0\0").topics) == 90


def test_unknown_tags_are_skipped() -> None:
    """Does a field from the future leave the fields we know alone?"""
    known = FetchRequest(cluster_id="here", replica_state=ReplicaState(replica_id=5, replica_epoch=7))
    data = encode_request(FETCH, 15, known)
    # The last section is the request's own tags: two known ones. A third, unknown one goes behind them.
    at = data.rindex(b"\x02\x00\x05\x05here")
    data = data[:at] + b"\x03" + data[at + 1 :] + b"\x09\x03abc"

    assert known == decode_request(FETCH, 15, data)


def test_a_known_tag_must_be_as_long_as_it_says() -> None:
    """Is a tagged value refused that ends before or after its announced end?"""
    data = encode_request(FETCH, 15, FetchRequest(cluster_id="here"))
    at = data.rindex(b"\x01\x00\x05\x05here")

    for size in (4, 6):
        wrong = data[:at] + bytes((1, 0, size)) + b"\x05here" + b"\0" * (size - 5)
        with pytest.raises(MalformedRequest, match="as long as it says"):
            decode_request(FETCH, 15, wrong)


def test_tagged_defaults_are_not_sent() -> None:
    """Does a tagged field at its default cost nothing?"""
    plain = encode_request(FETCH, 15, FetchRequest())

    assert plain == encode_request(FETCH, 15, FetchRequest(replica_state=ReplicaState()))
    assert len(plain) + 2 + 13 == len(encode_request(FETCH, 15, FetchRequest(replica_state=ReplicaState(replica_id=1))))


def test_a_refused_api_versions_request_can_be_answered_in_version_0() -> None:
    """Is there an answer for a client whose version we do not know (KIP-511)?"""
    answer = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=4),))

    assert struct.pack(">hihhh", 35, 1, 18, 0, 4) == encode_response(API_VERSIONS, 0, answer)


def test_fields_of_other_versions_are_left_out() -> None:
    """Can a handler fill in everything it knows and leave the version to the codec?"""
    request = ApiVersionsRequest(client_software_name="headrace", client_software_version="1")

    assert encode_request(API_VERSIONS, 2, request) == b""
    assert ApiVersionsRequest() == decode_request(API_VERSIONS, 2, b"")
    assert request == decode_request(API_VERSIONS, 3, encode_request(API_VERSIONS, 3, request))


def test_our_own_mistakes_fly_and_name_the_message() -> None:
    """Does an answer that cannot be written say which it was?"""
    with pytest.raises(TypeError) as caught:
        encode_request(METADATA, 0, MetadataRequest(topics=None))

    assert caught.value.__notes__ == ["while encoding MetadataRequest with <write_MetadataRequest v0>"]


def test_a_string_no_reader_takes_is_not_written() -> None:
    """Do we refuse to send what every Kafka client would choke on?"""
    with pytest.raises(ValueError, match="32768 bytes"):
        encode_request(METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name="a" * 32768),)))


def test_importing_the_codec_is_cheap() -> None:
    """Does the import load no message, nothing of kio, and none of the slow parts of Python?"""
    code = "import sys, headrace.wire.codec; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not [name for name in loaded if name.startswith(("headrace.wire.messages", "kio", "asyncio", "pathlib"))]


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
