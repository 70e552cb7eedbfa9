"""What a replicated partition refuses and tells: too few replicas, the wrong broker, other racks, deleted records."""

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cluster_shell import BrokerGroup
from headrace.model.errors import ErrorCode, StorageFault
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from scenarios.replicated import (
    PATIENCE_S,
    Writer,
    create,
    partition_of,
    read,
    state_of,
    until_in_sync,
    until_led_by_another,
)
from wire_client import WireClient

pytestmark = [pytest.mark.clients, pytest.mark.slow]

BATCH = bytes(build_batch([NewRecord(timestamp=1_700_000_000_000, value=b"v")]))
RACKS = {node: {"broker.rack": f"rack-{node}"} for node in (1, 2, 3)}


@pytest.fixture(scope="module")
def group():
    """Three brokers, each in its own rack and with two log dirs, and a controller apart."""
    settings = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with BrokerGroup(3, controllers=1, settings=settings, node_settings=RACKS, log_dirs=2) as group:
        yield group


def at(group, node):
    """A wire client of one broker."""
    return WireClient(int(group.address(node).rpartition(":")[2]))


def others(group, node):
    """The brokers that are not `node`."""
    return [other for other in (1, 2, 3) if other != node]


def topic_id(group, node, topic):
    """A topic's id."""
    return group.ask(node, lambda broker: broker.metadata.topics[topic].topic_id)


def fetch(group, node, topic, *, rack="", replica=None, epoch=-1, offset=0):
    """One fetch of partition 0 by topic id; the whole answer."""
    asked = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch, log_start_offset=0
    )
    request = FetchRequest(
        max_bytes=1 << 20,
        replica_state=replica or ReplicaState(),
        rack_id=rack,
        topics=(FetchTopic(topic_id=topic_id(group, node, topic), partitions=(asked,)),),
    )
    with at(group, node) as client:
        return client.ask("Fetch", 17, request)


def produce(group, node, topic, *, acks=-1, timeout_ms=30_000):
    """One batch to partition 0 at a broker, leader or not; the whole answer."""
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=BATCH),))
    with at(group, node) as client:
        return client.ask("Produce", 12, ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(data,)))


def row_of(response):
    """The one partition of a Produce or Fetch answer."""
    (topic,) = response.responses
    (row,) = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    return row


def test_too_few_replicas_refuse_acks_all(group):
    """Is acks=all refused while fewer are in sync than min.insync.replicas, acks=1 taken, and all well afterwards?"""
    create(group, "few", min_insync_replicas="2")
    leader = group.leader_of("few", 0)
    assert 0 == row_of(produce(group, leader, "few")).error_code
    for node in others(group, leader):
        group.kill(node)
    until_in_sync(group, "few", 1)
    group.until(leader, lambda metadata: len(metadata.topics["few"].partitions[0].isr) == 1)

    refused = row_of(produce(group, leader, "few"))
    taken = row_of(produce(group, leader, "few", acks=1))
    group.start(*others(group, leader))
    until_in_sync(group, "few", 3)

    assert ErrorCode.NOT_ENOUGH_REPLICAS == refused.error_code
    assert (0, 1) == (taken.error_code, taken.base_offset)
    assert 0 == row_of(produce(group, leader, "few")).error_code
    assert 3 == len(read(group, "few", 3))


def test_acks_all_times_out(group):
    """Is a producer told that the time is up while a follower that is in sync does not come for its batch?"""
    create(group, "late")
    leader = group.leader_of("late", 0)
    produce(group, leader, "late")
    follower = others(group, leader)[0]
    group.kill(follower)

    answer = row_of(produce(group, leader, "late", timeout_ms=200))

    group.start(follower)
    until_in_sync(group, "late", 3)
    assert ErrorCode.REQUEST_TIMED_OUT == answer.error_code


def test_wrong_broker_names_the_leader(group):
    """Does a broker that does not lead say who does, and where, to producers and to whoever must have the leader?"""
    create(group, "hint")
    state = state_of(group, "hint")
    follower = others(group, state.leader)[0]
    host, _, port = group.address(state.leader).partition(":")

    produced = produce(group, follower, "hint")
    posed = fetch(group, follower, "hint", replica=ReplicaState(replica_id=state.leader, replica_epoch=-1))

    for answer in (produced, posed):
        row = row_of(answer)
        assert ErrorCode.NOT_LEADER_OR_FOLLOWER == row.error_code
        assert (state.leader, state.leader_epoch) == (row.current_leader.leader_id, row.current_leader.leader_epoch)
        assert [(state.leader, host, int(port))] == [(n.node_id, n.host, n.port) for n in answer.node_endpoints]


def test_only_brokers_are_followers(group):
    """Is a client refused that poses as a follower: as no broker, as one of an old epoch, as no replica?"""
    create(group, "pose", replicas=2)
    state = state_of(group, "pose")
    follower = next(node for node in state.replicas if node != state.leader)
    stranger = next(node for node in (1, 2, 3) if node not in state.replicas)

    nobody = fetch(group, state.leader, "pose", replica=ReplicaState(replica_id=77, replica_epoch=1))
    old = row_of(fetch(group, state.leader, "pose", replica=ReplicaState(replica_id=follower, replica_epoch=0)))
    other = row_of(fetch(group, state.leader, "pose", replica=ReplicaState(replica_id=stranger, replica_epoch=-1)))

    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == nobody.error_code
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == old.error_code
    assert ErrorCode.UNKNOWN_LEADER_EPOCH == other.error_code


def test_consumers_read_in_their_rack(group):
    """Is a consumer sent to the replica in its rack, served there, and are only committed records served?"""
    create(group, "near")
    Writer(group, "near").write(b"1", b"2", b"3")
    leader = group.leader_of("near", 0)
    follower = others(group, leader)[0]
    found = read(group, "near", 3, **{"client.rack": f"rack-{follower}"})

    sent = row_of(fetch(group, leader, "near", rack=f"rack-{follower}"))
    at_home = row_of(fetch(group, leader, "near", rack=f"rack-{leader}"))
    served = row_of(fetch(group, follower, "near", rack=f"rack-{follower}"))

    assert [b"1", b"2", b"3"] == [value for _, value in found]
    assert (follower, b"") == (sent.preferred_read_replica, bytes(sent.records or b""))
    assert -1 == at_home.preferred_read_replica
    assert served.records
    assert served.records == at_home.records


def test_deleted_records_are_gone_everywhere(group):
    """Is DeleteRecords answered only when every replica starts later?"""
    create(group, "start")
    Writer(group, "start").write(*(b"%d" % number for number in range(10)))
    admin = AdminClient({"bootstrap.servers": group.bootstrap})

    (deleted,) = admin.delete_records([TopicPartition("start", 0, 6)]).values()

    assert 6 == deleted.result(PATIENCE_S).low_watermark
    assert [6, 6, 6] == [partition_of(group, node, "start").log.log_start_offset for node in (1, 2, 3)]


def test_epochs_and_offsets_are_asked_of_the_leader(group):
    """Do ListOffsets and Fetch refuse at followers what needs the leader, and epochs that are not the current one?"""
    create(group, "epochs")
    Writer(group, "epochs").write(b"1")
    state = state_of(group, "epochs")
    follower = others(group, state.leader)[0]
    with at(group, follower) as client:
        refused = client.list_offset("epochs", -1)
    with at(group, state.leader) as client:
        answered = client.list_offset("epochs", -1)

    newer = row_of(fetch(group, state.leader, "epochs", epoch=state.leader_epoch + 1))

    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refused.error_code
    assert (0, 1) == (answered.error_code, answered.offset)
    assert ErrorCode.UNKNOWN_LEADER_EPOCH == newer.error_code


def test_failed_log_dir_hands_its_leaders_over(group):
    """When one of a broker's log dirs fails, do its leaders move away while the other dir serves on?"""
    create(group, "disk", partitions=12)
    Writer(group, "disk").write(b"before")
    victim = group.leader_of("disk", 0)

    def fail(broker):
        partition = broker.partitions.find(("disk", 0))
        partition.log._break("the disk is broken")
        partition.on_flush_failed(StorageFault("the disk is broken"))
        failed = broker.partitions.log_dir_of(partition)
        return {name for name in failed.logs if name.startswith("disk-")}, failed.path

    gone, _ = group.ask(victim, fail)
    until_led_by_another(group, "disk", victim)

    def leaders(metadata):
        states = metadata.topics["disk"].partitions
        return {f"disk-{state.index}" for state in states if state.leader == victim}

    group.until(group.controller, lambda metadata: not leaders(metadata) & gone)
    assert group.ask(group.controller, lambda broker: leaders(broker.metadata))
    assert Writer(group, "disk").write(b"after") == [(1, b"after")]
    assert [b"before", b"after"] == [value for _, value in read(group, "disk", 2)]
