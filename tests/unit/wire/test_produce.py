"""Produce by hand, beside the generic codec and beside kio."""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import MalformedRequest
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import parse_response_header
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.wire.produce import (
    OBJECTS_MAX,
    ProduceCommand,
    encode_one_appended,
    encode_produce_response,
    parse_produce,
)

PRODUCE = 0
VERSIONS = range(3, 14)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPICS = st.lists(st.tuples(st.text(max_size=140), st.uuids()), max_size=3)


def expected_command(request: ProduceRequest, version: int) -> tuple[Any, ...]:
    """A request as the hand-written parser should give it, with the records themselves for their positions."""
    partitions = [
        (topic.topic_id if version >= 13 else topic.name, each.index, each.records)
        for topic in request.topic_data
        for each in topic.partition_data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, partitions


def given_command(command: ProduceCommand, view: memoryview) -> tuple[Any, ...]:
    """A parsed command in the same form."""
    partitions = [
        (topic, index, None if start < 0 else bytes(view[start:end])) for topic, index, start, end in command.partitions
    ]
    return command.transactional_id, command.acks, command.timeout_ms, partitions


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_kio_wrote_is_read(version: int, sample: Callable[..., Any]) -> None:
    """Does the hand-written parser see what kio wrote, from no topic to several?"""
    for seed in range(30):
        data, ours = sample(PRODUCE, version, "request", seed)
        view = memoryview(b"header" + data)

        assert expected_command(ours, version) == given_command(parse_produce(view, 6, version), view)


@st.composite
def requests(draw: st.DrawFn) -> ProduceRequest:
    """A produce request with any number of topics and partitions; records from null to a three-byte length."""
    records = st.none() | st.binary(max_size=200) | st.integers(16_380, 16_390).map(bytes)
    partition = st.builds(PartitionProduceData, index=INT32, records=records)
    return ProduceRequest(
        transactional_id=draw(st.none() | st.text(max_size=20)),
        acks=draw(st.integers(-1, 1)),
        timeout_ms=draw(INT32),
        topic_data=tuple(
            TopicProduceData(name=name, topic_id=topic_id, partition_data=tuple(draw(st.lists(partition, max_size=3))))
            for name, topic_id in draw(TOPICS)
        ),
    )


@given(requests(), st.sampled_from(VERSIONS))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_request_is_read_as_the_codec_wrote_it(request: ProduceRequest, version: int) -> None:
    """Do codec and hand-written parser agree on every request and version?"""
    view = memoryview(encode_request(PRODUCE, version, request))

    assert expected_command(request, version) == given_command(parse_produce(view, 0, version), view)


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 16_381, 16_382, 16_383, 16_384])
@pytest.mark.parametrize("tail", [b"\0\0\0", b"\0\0", b"\0\0\0\0", b"\0\0\1", b"\1\5\1x\0\0"])
def test_one_batch_of_one_topic(version: int, size: int, tail: bytes) -> None:
    """Is the usual request read at every width of its length, and judged by the whole of what stands behind it?"""
    data = PartitionProduceData(index=4, records=b"\7" * size)
    topic = TopicProduceData(name="topic", topic_id=UUID(int=5), partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=9, topic_data=(topic,))
    view = memoryview(encode_request(PRODUCE, version, request)[:-3] + tail)

    if tail in {b"\0\0\0", b"\1\5\1x\0\0"}:
        assert expected_command(request, version) == given_command(parse_produce(view, 0, version), view)
    else:
        with pytest.raises(MalformedRequest):
            parse_produce(view, 0, version)


def simple_request(version: int, **changes: Any) -> bytes:
    """A request of two topics with two partitions each."""
    topics = tuple(
        TopicProduceData(
            name=f"topic-{number}",
            topic_id=UUID(int=number),
            partition_data=tuple(PartitionProduceData(index=index, records=bytes(150)) for index in range(2)),
        )
        for number in range(2)
    )
    return encode_request(PRODUCE, version, ProduceRequest(topic_data=topics, transactional_id="t", **changes))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_is_malformed(version: int) -> None:
    """Is every proper prefix refused, and the request with one byte more?"""
    data = simple_request(version)

    for end in range(len(data)):
        with pytest.raises(MalformedRequest):
            parse_produce(memoryview(data)[:end], 0, version)
    with pytest.raises(MalformedRequest):
        parse_produce(memoryview(data + b"\0"), 0, version)


@pytest.mark.parametrize("version", [9, 13])
def test_tags_are_skipped_wherever_they_stand(version: int) -> None:
    """Do unknown tags in partition, topic and request leave the rest alone?"""
    tags = b"\x02\x05\x01x\x07\x00"
    topic = UUID(int=5).bytes if version == 13 else b"\x06topic"
    data = b"\0" + struct.pack(">hi", -1, 9) + b"\x02" + topic + b"\x02" + struct.pack(">i", 4) + b"\x04abc" + tags * 3

    command = parse_produce(memoryview(data), 0, version)

    start = data.index(b"abc")
    assert [(UUID(int=5) if version == 13 else "topic", 4, start, start + 3)] == command.partitions


def test_a_flood_of_tags_is_refused() -> None:
    """Are tags counted over the whole request?"""
    tags = b"\xe5\x00" + b"".join(struct.pack(">BB", tag, 0) for tag in range(101))
    partition = struct.pack(">i", 4) + b"\x01" + tags
    data = b"\0" + struct.pack(">hi", -1, 9) + b"\x02\x02a" + b"\x65" + partition * 100 + b"\0\0"

    with pytest.raises(MalformedRequest, match="tagged"):
        parse_produce(memoryview(data), 0, 9)


@pytest.mark.parametrize("count", [b"\x00", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff"])
def test_a_wrong_count_is_refused(count: bytes) -> None:
    """Are null, huge and endless counts refused, of topics and of partitions?"""
    head = b"\0" + struct.pack(">hi", -1, 9)
    for data in (head + count + b"\0" * 50, head + b"\x02\x02a" + count + b"\0" * 50):
        with pytest.raises(MalformedRequest):
            parse_produce(memoryview(data), 0, 9)


RESULTS = st.tuples(INT32, st.sampled_from([0, 2, 3, 6, 87]), INT64, INT64, INT64, st.none() | st.text(max_size=150))
ENDPOINTS = st.lists(st.tuples(INT32, st.text(max_size=9), INT32, st.none() | st.text(max_size=9)), max_size=2)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Any, ...]:
    """What a broker answers: results by topic, throttle time, and sometimes new leaders and where they are."""
    topics = [(name, topic_id, draw(st.lists(RESULTS, max_size=3))) for name, topic_id in draw(TOPICS)]
    leaders = {
        (number, result[0]): (draw(INT32), draw(INT32))
        for number, (_, _, results) in enumerate(topics)
        for result in results
        if draw(st.integers(0, 4)) == 0
    }
    return topics, draw(INT32), leaders, draw(ENDPOINTS) if leaders else []


def expected_response(answer: tuple[Any, ...], version: int) -> ProduceResponse:
    """The answer as the codec's message, without what this version cannot say."""
    topics, throttle_ms, leaders, endpoints = answer
    responses = []
    for number, (name, topic_id, results) in enumerate(topics):
        partitions = []
        for index, code, base, time_ms, start, message in results:
            leader_id, leader_epoch = leaders.get((number, index), (-1, -1)) if version >= 10 else (-1, -1)
            partitions.append(
                PartitionProduceResponse(
                    index=index,
                    error_code=code,
                    base_offset=base,
                    log_append_time_ms=time_ms,
                    log_start_offset=start if version >= 5 else -1,
                    error_message=message if version >= 8 else None,
                    current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
                )
            )
        topic = {"topic_id": topic_id} if version >= 13 else {"name": name}
        responses.append(TopicProduceResponse(**topic, partition_responses=tuple(partitions)))
    nodes = tuple(NodeEndpoint(node_id=n, host=h, port=p, rack=r) for n, h, p, r in endpoints)
    return ProduceResponse(
        responses=tuple(responses), throttle_time_ms=throttle_ms, node_endpoints=nodes if version >= 10 else ()
    )


def encode(answer: tuple[Any, ...], version: int) -> bytes:
    """The answer through the encoder under test; its leaders are keyed by topic."""
    topics, throttle_ms, leaders, endpoints = answer
    keys = [topic_id if version >= 13 else name for name, topic_id, _ in topics]
    return encode_produce_response(
        version,
        77,
        [(key, results) for key, (_, _, results) in zip(keys, topics, strict=True)],
        throttle_ms,
        leaders={(keys[number], index): leader for (number, index), leader in leaders.items()},
        endpoints=endpoints,
    )


@given(
    answers().filter(lambda answer: len({name for name, *_ in answer[0]}) == len(answer[0])), st.sampled_from(VERSIONS)
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_response_is_what_the_codec_reads(answer: tuple[Any, ...], version: int) -> None:
    """Is the whole frame right: length, header and body?"""
    data = encode(answer, version)

    (size,) = struct.unpack_from(">i", data)
    correlation_id, body = parse_response_header(PRODUCE, version, memoryview(data)[4:])
    assert (size, correlation_id) == (len(data) - 4, 77)
    assert expected_response(answer, version) == decode_response(PRODUCE, version, memoryview(data)[4:], body)


@pytest.mark.parametrize("version", range(9, 14))
def test_one_batch_that_was_appended(version: int) -> None:
    """Is the short way to the usual answer the same answer?"""
    topic = UUID(int=2**128 - 5) if version >= 13 else "topic"
    result = (2**31 - 1, 0, 2**62, 1_700_000_000_000, 17, None)

    usual = encode_one_appended(version, 2**31 - 1, topic, result)

    assert usual == encode_produce_response(version, 2**31 - 1, [(topic, [result])])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "results",
    [
        pytest.param([(3, 0, 1234, 1_700_000_000_000, 17, None)], id="one partition"),
        pytest.param([(3, 0, 1234, -1, 17, None), (4, 87, -1, -1, 17, "no key")], id="two partitions"),
    ],
)
def test_a_response_is_what_kio_reads(
    version: int, results: list[Any], read_with_kio: Callable[[int, int, str, bytes], Any]
) -> None:
    """Do kio and we mean the same by the bytes of an answer?"""
    answer = ([("topic", UUID(int=9), results)], 250, {}, [])
    data = encode(answer, version)
    body = data[8 + (version >= 9) :]

    assert expected_response(answer, version) == read_with_kio(PRODUCE, version, "response", body)


@pytest.mark.parametrize("version", [8, 12])
def test_batches_of_one_request_are_limited(version: int) -> None:
    """Are as many batches taken as a producer can send by default, and no more, however they are spread?"""

    def request(topics: int, partitions: int) -> bytes:
        data = tuple(PartitionProduceData(index=index, records=b"") for index in range(partitions))
        spread = (TopicProduceData(name="t", partition_data=data),) * topics
        return encode_request(PRODUCE, version, ProduceRequest(acks=1, timeout_ms=1, topic_data=spread))

    assert len(parse_produce(request(1, OBJECTS_MAX - 1), 0, version).partitions) == OBJECTS_MAX - 1
    assert len(parse_produce(request(OBJECTS_MAX // 2, 1), 0, version).partitions) == OBJECTS_MAX // 2
    for topics, partitions in ((1, OBJECTS_MAX + 1), (OBJECTS_MAX + 1, 1), (10, OBJECTS_MAX // 10)):
        with pytest.raises(MalformedRequest, match="more elements allowed"):
            parse_produce(request(topics, partitions), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_bad_records_are_named_where_the_version_can(version: int) -> None:
    """Does the answer name the records at fault from version 8 on, beside the partition they are of and no other?"""
    topic: str | UUID = UUID(int=7) if version >= 13 else "t"
    rows = [(0, 0, 5, -1, 0, None), (1, 87, -1, -1, -1, "two are bad")]
    faults = {(topic, 1): [(3, "no key"), (4, "no key")]}
    data = memoryview(encode_produce_response(version, 9, [(topic, rows)], record_errors=faults))[4:]
    _, body = parse_response_header(PRODUCE, version, data)
    good, bad = decode_response(PRODUCE, version, data, body).responses[0].partition_responses

    named = tuple(BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message="no key") for at in (3, 4))
    assert (() if version < 8 else named) == bad.record_errors
    assert ((), 5) == (good.record_errors, good.base_offset)
