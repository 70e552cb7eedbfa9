"""Fetch by hand, beside the generic codec and beside kio."""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import MalformedRequest
from headrace.wire import fetch
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.fetch import FetchCommand, FetchedPartition, encode_fetch_response, parse_fetch
from headrace.wire.header import parse_response_header
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)

FETCH = 1
VERSIONS = range(4, 19)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPICS = st.lists(st.tuples(st.text(max_size=140), st.uuids()), max_size=3)


def expected_command(request: FetchRequest, version: int) -> FetchCommand:
    """A request as the hand-written parser should give it."""

    def key(topic: FetchTopic | ForgottenTopic) -> str | UUID:
        return topic.topic_id if version >= 13 else topic.topic

    state = request.replica_state
    return FetchCommand(
        state.replica_id if version >= 15 else request.replica_id,
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
        [
            (
                key(topic),
                [
                    fetch.FetchPartition(
                        each.partition,
                        each.current_leader_epoch,
                        each.fetch_offset,
                        each.last_fetched_epoch,
                        each.log_start_offset,
                        each.partition_max_bytes,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        [(key(topic), list(topic.partitions)) for topic in request.forgotten_topics_data],
        request.rack_id,
        request.cluster_id,
        state.replica_epoch if version >= 15 else -1,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_kio_wrote_is_read(version: int, sample: Callable[..., Any]) -> None:
    """Does the hand-written parser see what kio wrote, from no topic to several, with and without tags?"""
    for seed in range(30):
        data, ours = sample(FETCH, version, "request", seed)

        assert expected_command(ours, version) == parse_fetch(memoryview(b"header" + data), 6, version)


@st.composite
def requests(draw: st.DrawFn) -> FetchRequest:
    """A flexible fetch request with any number of topics and partitions, also none."""
    partition = st.builds(
        FetchPartition,
        partition=INT32,
        current_leader_epoch=INT32,
        fetch_offset=INT64,
        last_fetched_epoch=INT32,
        log_start_offset=INT64,
        partition_max_bytes=INT32,
        replica_directory_id=st.uuids(),
        high_watermark=INT64,
    )
    return FetchRequest(
        cluster_id=draw(st.none() | st.text(max_size=9)),
        replica_state=ReplicaState(replica_id=draw(INT32), replica_epoch=draw(INT64)),
        replica_id=draw(INT32),
        max_wait_ms=draw(INT32),
        isolation_level=draw(st.integers(0, 1)),
        session_id=draw(INT32),
        session_epoch=draw(INT32),
        topics=tuple(
            FetchTopic(topic=name, topic_id=topic_id, partitions=tuple(draw(st.lists(partition, max_size=3))))
            for name, topic_id in draw(TOPICS)
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic=name, topic_id=topic_id, partitions=tuple(draw(st.lists(INT32, max_size=3))))
            for name, topic_id in draw(TOPICS)
        ),
        rack_id=draw(st.text(max_size=9)),
    )


@given(requests(), st.sampled_from(range(12, 19)))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_request_is_read_as_the_codec_wrote_it(request: FetchRequest, version: int) -> None:
    """Do codec and hand-written parser agree on every request and flexible version?"""
    data = encode_request(FETCH, version, request)

    assert expected_command(request, version) == parse_fetch(memoryview(data), 0, version)


def simple_request(version: int) -> bytes:
    """A request with something of everything."""
    topic = {"topic": "topic", "topic_id": UUID(int=5)}
    request = FetchRequest(
        cluster_id="cluster",
        replica_state=ReplicaState(replica_id=2, replica_epoch=3),
        topics=(FetchTopic(**topic, partitions=(FetchPartition(partition=1), FetchPartition(partition=2))),),
        forgotten_topics_data=(ForgottenTopic(**topic, partitions=(7, 8)),),
        rack_id="rack",
    )
    return encode_request(FETCH, version, request)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_is_malformed(version: int) -> None:
    """Is every proper prefix refused, and the request with one byte more?"""
    data = simple_request(version)

    for end in range(len(data)):
        with pytest.raises(MalformedRequest):
            parse_fetch(memoryview(data)[:end], 0, version)
    with pytest.raises(MalformedRequest):
        parse_fetch(memoryview(data + b"\0"), 0, version)


def test_a_known_tag_must_be_as_long_as_it_says() -> None:
    """Is a tagged value refused that ends before or after its announced end?"""
    data = simple_request(12)
    at = data.rindex(b"\x01\x00\x08\x08cluster")

    for size in (7, 9):
        with pytest.raises(MalformedRequest, match="as long as it says"):
            parse_fetch(memoryview(data[:at] + bytes((1, 0, size)) + b"\x08cluster" + b"\0" * (size - 8)), 0, 12)


def test_unknown_tags_are_skipped() -> None:
    """Does a tag from the future leave the rest alone, and one of a later version stay unread?"""
    plain = encode_request(FETCH, 14, FetchRequest())
    state = struct.pack(">iqb", 5, 6, 0)

    command = parse_fetch(memoryview(plain[:-1] + b"\x02\x01" + bytes((len(state),)) + state + b"\x63\x00"), 0, 14)

    assert expected_command(FetchRequest(), 14) == command


@st.composite
def partitions(draw: st.DrawFn) -> FetchedPartition:
    """What is answered for a partition, with or without records, in one buffer or several."""
    pair = st.tuples(INT64, INT64)
    return FetchedPartition(
        draw(INT32),
        draw(st.sampled_from([0, 1, 3, 6])),
        draw(INT64),
        draw(INT64),
        draw(INT64),
        draw(st.none() | st.lists(pair, max_size=2)),
        draw(INT32),
        draw(st.none() | st.tuples(INT32, INT64)),
        draw(st.none() | st.tuples(INT32, INT32)),
        [memoryview(part) for part in draw(st.lists(st.binary(max_size=200), max_size=3))],
    )


ENDPOINTS = st.lists(st.tuples(INT32, st.text(max_size=9), INT32, st.none() | st.text(max_size=9)), max_size=2)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """What a broker answers."""
    topics = [(name, topic_id, draw(st.lists(partitions(), max_size=3))) for name, topic_id in draw(TOPICS)]
    numbers = {"throttle_ms": draw(INT32), "error_code": draw(st.sampled_from([0, 70, 71])), "session_id": draw(INT32)}
    return {"topics": topics, "endpoints": draw(ENDPOINTS), **numbers}


def expected_response(answer: dict[str, Any], version: int) -> FetchResponse:
    """The answer as the codec's message, without what this version cannot say."""
    responses = []
    for name, topic_id, fetched in answer["topics"]:
        topic = {"topic_id": topic_id} if version >= 13 else {"topic": name}
        responses.append(
            FetchableTopicResponse(**topic, partitions=tuple(expected_partition(each, version) for each in fetched))
        )
    nodes = tuple(NodeEndpoint(node_id=n, host=h, port=p, rack=r) for n, h, p, r in answer["endpoints"])
    return FetchResponse(
        throttle_time_ms=answer["throttle_ms"],
        error_code=answer["error_code"] if version >= 7 else 0,
        session_id=answer["session_id"] if version >= 7 else 0,
        responses=tuple(responses),
        node_endpoints=nodes if version >= 16 else (),
    )


def expected_partition(each: FetchedPartition, version: int) -> PartitionData:
    """One partition of the answer as the codec's message."""
    aborted = None
    if each.aborted is not None:
        aborted = tuple(AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in each.aborted)
    epoch, end_offset = (each.diverging_epoch or (-1, -1)) if version >= 12 else (-1, -1)
    leader_id, leader_epoch = (each.current_leader or (-1, -1)) if version >= 12 else (-1, -1)
    return PartitionData(
        partition_index=each.partition,
        error_code=each.error_code,
        high_watermark=each.high_watermark,
        last_stable_offset=each.last_stable_offset,
        log_start_offset=each.log_start_offset if version >= 5 else -1,
        aborted_transactions=aborted,
        preferred_read_replica=each.preferred_read_replica if version >= 11 else -1,
        diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
        current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
        records=b"".join(each.records),
    )


def encode(answer: dict[str, Any], version: int) -> list[Any]:
    """The answer through the encoder under test."""
    topics = [(topic_id if version >= 13 else name, fetched) for name, topic_id, fetched in answer["topics"]]
    return encode_fetch_response(version, 77, **{**answer, "topics": topics})


@given(answers(), st.sampled_from(VERSIONS))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_response_is_what_the_codec_reads(answer: dict[str, Any], version: int) -> None:
    """Is the whole frame right: length, header and body?"""
    data = b"".join(encode(answer, version))

    (size,) = struct.unpack_from(">i", data)
    correlation_id, body = parse_response_header(FETCH, version, memoryview(data)[4:])
    assert (size, correlation_id) == (len(data) - 4, 77)
    assert expected_response(answer, version) == decode_response(FETCH, version, memoryview(data)[4:], body)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_is_what_kio_reads(version: int, read_with_kio: Callable[[int, int, str, bytes], Any]) -> None:
    """Do kio and we mean the same by the bytes of an answer?"""
    fetched = [
        FetchedPartition(0, 0, 9, 8, 1, [(5, 6)], -1, None, None, [b"first", b"second"]),
        FetchedPartition(1, 6, current_leader=(3, 4), diverging_epoch=(2, 7)),
    ]
    answer = {
        "topics": [("topic", UUID(int=9), fetched)],
        "endpoints": [(3, "host", 9092, None)],
        "throttle_ms": 5,
        "error_code": 0,
        "session_id": 6,
    }
    data = b"".join(encode(answer, version))
    body = data[8 + (version >= 12) :]

    assert expected_response(answer, version) == read_with_kio(FETCH, version, "response", body)


@pytest.mark.parametrize("version", [11, 16])
def test_records_are_passed_through_untouched(version: int) -> None:
    """Do the log's own views leave again as the same objects?"""
    views = [memoryview(bytearray(100)), memoryview(bytearray(50))]
    answer = {
        "topics": [("topic", UUID(int=9), [FetchedPartition(0, records=[view]) for view in views])],
        "throttle_ms": 0,
        "error_code": 0,
        "session_id": 0,
    }

    buffers = encode(answer, version)

    assert [id(view) for view in views] == [id(buffer) for buffer in buffers if isinstance(buffer, memoryview)]
    assert 0 not in map(len, buffers[:-1])
