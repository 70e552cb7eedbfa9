"""Well-formed requests that claim what is not so: names that are paths, offsets that never were, wrong epochs."""

from uuid import UUID

import pytest

from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire_client import WireClient, one_fetch

pytestmark = pytest.mark.slow

BATCH = bytes(build_batch([NewRecord(1, None, b"value", ())]))
BAD_NAMES = (
    "",
    ".",
    "..",
    "a/b",
    "../escape",
    "/etc/passwd",
    "a\\b",
    "a\0b",
    "a b",
    "a\nb",
    "x" * 250,
    "ünïcode",
    "漢字",
    "a:b",
    "*",
    "a,b",
)


def tree(target) -> set[str]:
    """Every directory and file beside and under the broker's data."""
    return {path.relative_to(target.directory).as_posix() for path in target.directory.rglob("*") if path.is_dir()}


@pytest.mark.parametrize("name", BAD_NAMES, ids=[str(number) for number in range(len(BAD_NAMES))])
def test_bad_names(target, neighbour, guarded, wire, name):
    """Is a name that could be a path, or none, refused everywhere, and nothing made of it on the disk?"""
    client = wire(target)
    before = tree(target)
    created = client.create_topic(name)
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)
    (described,) = client.ask("Metadata", 12, request).topics
    produced = client.produce(name, BATCH)
    fetched = client.fetch(name, 0)
    deleted = client.delete_topic(name)

    assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert described.error_code in {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert {produced.error_code, fetched.error_code, deleted.error_code} <= unknown
    assert tree(target) == before


def test_names_that_collide(target, neighbour, guarded, wire):
    """Is a topic refused whose name differs from another's only by a dot for an underscore?"""
    client = wire(target)
    assert client.create_topic("hostile.dots_and").error_code == 0

    assert client.create_topic("hostile_dots.and").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partition", [-1, -(2**31), 1, 2**31 - 1])
def test_partitions_that_are_not_there(target, neighbour, guarded, wire, partition):
    """Is a partition that does not exist unknown to every API?"""
    client = wire(target)

    for result in (
        client.produce(guarded, BATCH, partition=partition),
        client.fetch(guarded, 0, partition=partition),
        client.list_offset(guarded, -1, partition=partition),
    ):
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("partitions", [0, -2, 2**31 - 1, 1_000_000])
def test_absurd_partition_counts(target, neighbour, guarded, wire, partitions):
    """Is a topic with no partitions, or with millions, refused?"""
    client = wire(target)
    result = client.create_topic(f"{guarded}-absurd", partitions=partitions)

    assert result.error_code in {ErrorCode.INVALID_PARTITIONS, ErrorCode.POLICY_VIOLATION}
    assert client.describe_topic(f"{guarded}-absurd").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("offset", [-1, -2, -(2**63), 4, 2**40, 2**63 - 1])
def test_offsets_that_are_not_there(target, neighbour, guarded, wire, offset):
    """Is a fetch before the start or behind the end out of range, at once, though it would wait?"""
    client = wire(target)

    assert client.fetch(guarded, offset, max_wait_ms=10_000).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1])
def test_sizes_of_fetches(target, neighbour, guarded, wire, size):
    """Does a fetch of no bytes, fewer, or two gigabytes get a sensible answer?"""
    client = wire(target)
    result = client.fetch(guarded, 0, max_bytes=size)

    assert result.error_code == 0


@pytest.mark.parametrize("wait_ms", [-1, -(2**31)])
def test_negative_waits(target, neighbour, guarded, wire, wait_ms):
    """Is a fetch that waits for less than nothing answered at once?"""
    assert wire(target).fetch(guarded, 3, max_wait_ms=wait_ms).error_code == 0


@pytest.mark.parametrize("offset", [-2, -(2**63), 4, 2**63 - 1])
def test_deleting_records_that_are_not_there(target, neighbour, guarded, wire, offset):
    """Is deleting up to an offset that never was refused, and nothing deleted?"""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=guarded, partitions=(partition,)),), timeout_ms=1_000
    )
    (answer,) = wire(target).ask("DeleteRecords", 2, request).topics

    assert answer.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("timestamp", [-7, -100, -(2**63), 2**63 - 1])
def test_timestamps_that_are_none(target, neighbour, guarded, wire, timestamp):
    """Is a lookup of a time that cannot be answered with nothing or an error?"""
    result = wire(target).list_offset(guarded, timestamp)

    assert (result.error_code, result.offset) in {(0, -1), (ErrorCode.UNSUPPORTED_VERSION, -1)}


@pytest.mark.parametrize("epoch", [1, 7, 2**31 - 1])
def test_epochs_of_the_future(target, neighbour, guarded, wire, epoch):
    """Is a client that claims to know a later leader told that we do not?"""
    client = wire(target)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000, current_leader_epoch=epoch)
    request = FetchRequest(max_bytes=1_000, topics=(FetchTopic(topic=guarded, partitions=(asked,)),))
    (fetched,) = client.ask("Fetch", 12, request).responses
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
    listing = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=guarded, partitions=(wanted,)),))
    (listed,) = client.ask("ListOffsets", 6, listing).topics
    leader = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    ending = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=guarded, partitions=(leader,)),))
    (ended,) = client.ask("OffsetForLeaderEpoch", 4, ending).topics

    assert fetched.partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert listed.partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ended.partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", [4, 11, 14, 15, 17])
def test_client_that_poses_as_a_replica(target, neighbour, guarded, wire, version):
    """Is a fetch as another broker refused, with nothing read and nothing believed (CVE-2018-1288)?"""
    client = wire(target)
    asked = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1_000)
    topic = FetchTopic(topic=guarded, topic_id=client.describe_topic(guarded).topic_id, partitions=(asked,))
    pose = {"replica_id": 2} if version < 15 else {"replica_state": ReplicaState(replica_id=2, replica_epoch=1)}
    answer = client.ask("Fetch", version, FetchRequest(max_bytes=1_000, topics=(topic,), **pose))

    # The first versions have no place for the error; then nothing is answered at all.
    assert answer.error_code or version < 7
    assert answer.responses == ()


@pytest.mark.parametrize(("session", "epoch"), [(12345, 1), (-1, 5), (2**31 - 1, 2**31 - 1), (0, 3)])
def test_sessions_that_are_not_there(target, neighbour, guarded, wire, session, epoch):
    """Is a fetch session nobody opened refused?"""
    request = one_fetch(guarded, 0)
    claimed = FetchRequest(session_id=session, session_epoch=epoch, max_bytes=1_000, topics=request.topics)
    answer = wire(target).ask("Fetch", 12, claimed)

    assert answer.error_code in {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}


def test_sessions_have_a_limit(target, neighbour, guarded):
    """Does a flood of fetch sessions cost little, and still get its records?"""
    before = target.memory().anonymous_bytes
    with WireClient(target.port) as client:
        for _ in range(3_000):
            request = FetchRequest(
                session_id=0, session_epoch=0, max_bytes=1_000, topics=one_fetch(guarded, 0, max_bytes=1_000).topics
            )
            answer = client.ask("Fetch", 12, request)
            assert answer.error_code == 0
            assert answer.responses[0].partitions[0].records

    assert target.memory().anonymous_bytes - before < 16 << 20


def test_producer_ids_have_a_limit(target, neighbour, wire, topic):
    """Does a flood of producer ids in one partition cost little memory?"""
    client = wire(target)
    assert client.create_topic(topic, flush_on_acks_all="false").error_code == 0
    before = target.memory().anonymous_bytes
    for producer_id in range(6_000):
        batch = build_batch([NewRecord(1, None, b"v", ())], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert client.produce(topic, bytes(batch)).error_code == 0

    assert target.memory().anonymous_bytes - before < 16 << 20


@pytest.mark.parametrize("version", [10, 11, 12, 13])
@pytest.mark.parametrize("topic_id", [ZERO_ID, UUID(int=7)], ids=["nothing", "an id"])
def test_topics_without_a_name(target, neighbour, guarded, wire, version, topic_id):
    """Is a topic asked for by id, or by nothing, answered in the versions that cannot say so too?"""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=topic_id),))
    (topic,) = wire(target).ask("Metadata", version, request).topics

    if version < 12:
        assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, "")
    else:
        unknown = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_id == ZERO_ID else ErrorCode.UNKNOWN_TOPIC_ID
        assert topic.error_code == unknown
