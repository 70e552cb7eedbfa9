"""Replicas that move, start over and are deleted, and transactions that follow their partition."""

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from cluster_shell import BrokerGroup
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from scenarios.replicated import (
    PATIENCE_S,
    Writer,
    bytes_of,
    create,
    partition_of,
    plays_its_part,
    read,
    until_in_sync,
    until_led_by_another,
)
from wire_client import WireClient

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def group():
    """Three brokers that are controllers too."""
    with BrokerGroup(3, settings={"log.segment.delete.delay.ms": "0", "min.insync.replicas": "1"}) as group:
        yield group


def reassign(group, topic, replicas):
    """Ask to have partition 0 held by other brokers."""
    partition = ReassignablePartition(partition_index=0, replicas=tuple(replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000, topics=(ReassignableTopic(name=topic, partitions=(partition,)),)
    )
    with WireClient(int(group.address(group.leader_of(topic, 0)).rpartition(":")[2])) as client:
        response = client.ask("AlterPartitionReassignments", 0, request)
    assert 0 == response.error_code
    assert 0 == response.responses[0].partitions[0].error_code


def until_moved(group, topic, replicas):
    """Wait until partition 0 is held by these brokers, and by no others."""
    for node in group.brokers:
        group.until(node, lambda metadata: metadata.topics[topic].partitions[0].replicas == tuple(replicas))


def test_replica_moves(group):
    """Is everything there after a partition moved to a broker that did not hold it, and nothing left where it was?"""
    create(group, "move", replicas=1)
    writer = Writer(group, "move")
    writer.write(*(b"%d" % number for number in range(50)))
    old = group.leader_of("move", 0)
    new = next(node for node in (1, 2, 3) if node != old)

    reassign(group, "move", [new])
    until_moved(group, "move", [new])
    writer.write(b"behind")

    assert new == group.leader_of("move", 0)
    assert [*(b"%d" % number for number in range(50)), b"behind"] == [v for _, v in read(group, "move", 51)]
    group.until(old, lambda metadata: partition_of(group, old, "move") is None)
    assert partition_of(group, old, "move") is None


def test_replica_is_added(group):
    """Does a partition that had one replica count a second one, and go on without the first?"""
    create(group, "grow", replicas=1)
    writer = Writer(group, "grow")
    writer.write(b"alone")
    first = group.leader_of("grow", 0)
    second = next(node for node in (1, 2, 3) if node != first)
    reassign(group, "grow", [first, second])
    until_moved(group, "grow", [first, second])
    until_in_sync(group, "grow", 2)
    writer.write(b"together")

    group.kill(first)
    until_led_by_another(group, "grow", first)
    found = read(group, "grow", 2)
    group.start(first)

    assert [b"alone", b"together"] == [value for _, value in found]


def test_topic_made_again_is_empty(group):
    """Does a topic of the same name begin empty on every replica, though one of them was away meanwhile?"""
    create(group, "again")
    Writer(group, "again").write(b"old")
    away = next(node for node in (1, 2, 3) if node != group.leader_of("again", 0))
    group.stop(away)
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    (deleted,) = admin.delete_topics(["again"]).values()
    deleted.result(PATIENCE_S)
    create(group, "again", replicas=2)
    reassign(group, "again", [1, 2, 3])
    group.start(away)
    until_moved(group, "again", [1, 2, 3])
    until_in_sync(group, "again", 3)
    Writer(group, "again").write(b"new")

    assert [(0, b"new")] == read(group, "again", 1)
    group.until(away, lambda metadata: plays_its_part(group.brokers[away], "again"))
    assert bytes_of(group, away, "again") == bytes_of(group, group.leader_of("again", 0), "again")


def test_follower_starts_over(group):
    """Does a follower begin where the leader does, when the leader has deleted what would follow its own log?"""
    create(group, "over")
    writer = Writer(group, "over")
    writer.write(b"first")
    leader = group.leader_of("over", 0)
    follower = next(node for node in (1, 2, 3) if node != leader)
    group.stop(follower)
    writer.write(*(b"%d" % number for number in range(20)))
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition("over", 0, 15)]).values()
    assert 15 == deleted.result(PATIENCE_S).low_watermark

    group.start(follower)
    until_in_sync(group, "over", 3)
    writer.write(b"last")

    log = partition_of(group, follower, "over").log
    assert (15, 22) == (log.log_start_offset, log.log_end_offset)


def test_transactions_follow_their_partition(group):
    """Does a new leader know what was aborted, what is open, and who its producers are?"""
    create(group, "ends")
    producer = Producer({"bootstrap.servers": group.bootstrap, "transactional.id": "t", "retry.backoff.ms": 50})
    producer.init_transactions(PATIENCE_S)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("ends", value, partition=0)
        assert 0 == producer.flush(PATIENCE_S)
        end(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("ends", b"later", partition=0)
    assert 0 == producer.flush(PATIENCE_S)

    leader = group.leader_of("ends", 0)
    group.kill(leader)
    until_led_by_another(group, "ends", leader)
    producer.commit_transaction(PATIENCE_S)
    found = read(group, "ends", 2, **{"isolation.level": "read_committed"})
    group.start(leader)

    assert [b"committed", b"later"] == [value for _, value in found]
