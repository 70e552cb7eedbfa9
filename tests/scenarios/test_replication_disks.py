"""Replicas and disks of a cluster: moves between log dirs, throttled moves between brokers, and all disks lost."""

import threading
from contextlib import contextmanager

import pytest

from cluster_shell import BrokerGroup
from headrace.broker.partitions import assigned_directory
from headrace.model.errors import StorageFault
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from scenarios.replicated import Writer, bytes_of, create, partition_of, read, until_in_sync, until_led_by_another
from wire_client import WireClient

pytestmark = [pytest.mark.clients, pytest.mark.slow]

TOPIC, BROKER = 2, 4
SETTINGS = {
    "log.segment.delete.delay.ms": "0",
    "min.insync.replicas": "1",
    "replica.fetch.max.bytes": "10000",
    "replica.fetch.response.max.bytes": "10000",
}


@pytest.fixture(scope="module")
def group():
    """Three brokers with two log dirs each, and a controller apart."""
    with BrokerGroup(3, controllers=1, settings=SETTINGS, log_dirs=2) as group:
        yield group


def at(group, node):
    """A wire client of one broker."""
    return WireClient(int(group.address(node).rpartition(":")[2]))


def move_dir(group, node, topic):
    """Have a broker move its replica of partition 0 to its other log dir; gives its path and id."""
    here = group.ask(node, lambda broker: broker.partitions.log_dir_of(partition_of(group, node, topic)))
    target = next(one for one in group.brokers[node].store.log_dirs if one is not here)
    wanted = AlterReplicaLogDir(path=target.path, topics=(AlterReplicaLogDirTopic(name=topic, partitions=(0,)),))
    with at(group, node) as client:
        answer = client.ask("AlterReplicaLogDirs", 2, AlterReplicaLogDirsRequest(dirs=(wanted,)))
    assert 0 == answer.results[0].partitions[0].error_code
    return target


def alter(group, kind, name, operation, **settings):
    """Set settings, written with underscores, or with operation 1 take them back."""
    configs = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=operation, value=value)
        for key, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with at(group, 1) as client:
        answer = client.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert 0 == answer.responses[0].error_code


@contextmanager
def writing(writer):
    """Write all the time, from a thread."""
    done = threading.Event()

    def write_on():
        number = 0
        while not done.is_set():
            writer.write(b"%d" % number)
            number += 1

    thread = threading.Thread(target=write_on)
    thread.start()
    try:
        writer.until_more()
        yield
        writer.until_more()
    finally:
        done.set()
        thread.join()


def test_replicas_move_between_dirs_while_they_are_written_to(group):
    """Do leader and follower move to their other log dirs under load, all replicas staying equal, nothing lost?"""
    create(group, "dirs")
    writer = Writer(group, "dirs")
    leader = group.leader_of("dirs", 0)
    follower = next(node for node in (1, 2, 3) if node != leader)
    with writing(writer):
        targets = {node: move_dir(group, node, "dirs") for node in (leader, follower)}
        for node in targets:
            group.call(node, lambda broker: broker.replicas.moves.ended())
    writer.write(b"last")

    assert [] == writer.failed
    assert sorted(writer.acked) == read(group, "dirs", len(writer.acked))
    for node, target in targets.items():
        assert target.path == group.ask(
            node, lambda broker, node=node: broker.partitions.log_dir_of(partition_of(group, node, "dirs")).path
        )
        group.until(
            group.controller,
            lambda metadata, node=node, target=target: (
                assigned_directory(metadata.topics["dirs"].partitions[0], node) == target.meta.directory_id
            ),
        )
    until_in_sync(group, "dirs", 3)
    assert 1 == len({bytes_of(group, node, "dirs") for node in (1, 2, 3)})
    group.kill(leader)
    until_led_by_another(group, "dirs", leader)
    assert sorted(writer.acked) == read(group, "dirs", len(writer.acked))
    group.start(leader)


def reassign(group, topic, replicas):
    """Ask to have partition 0 held by other brokers."""
    partition = ReassignablePartition(partition_index=0, replicas=tuple(replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000, topics=(ReassignableTopic(name=topic, partitions=(partition,)),)
    )
    with at(group, 1) as client:
        assert 0 == client.ask("AlterPartitionReassignments", 0, request).error_code


def fill(group, topic, node, count):
    """Make a topic of one replica on a broker, with so many batches of which a fetch brings one."""
    create(group, topic, replicas=1)
    reassign(group, topic, [node])
    group.until(node, lambda metadata: metadata.topics[topic].partitions[0].replicas == (node,))
    writer = Writer(group, topic)
    for number in range(count):
        writer.write(bytes([number]) * 9000)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttled_move_waits(group, side):
    """Does a throttled new replica wait while one with more to copy over the same link passes it, and come in later?"""
    slow, quick = f"slow-{side}", f"quick-{side}"
    old, new = 1, 2
    throttled = old if side == "leader" else new
    fill(group, slow, old, 10)
    fill(group, quick, old, 40)
    rate = {f"{side}_replication_throttled_rate": "10"}
    alter(group, BROKER, str(throttled), 0, **rate)
    alter(group, TOPIC, slow, 0, **{f"{side}_replication_throttled_replicas": f"0:{throttled}"})
    group.until(throttled, lambda _: getattr(group.brokers[throttled].throttles, side).is_throttled(slow, 0))

    reassign(group, slow, [old, new])
    reassign(group, quick, [old, new])
    until_in_sync(group, quick, 2)
    log = partition_of(group, new, slow).log
    copied = group.ask(new, lambda _: log.log_end_offset)
    alter(group, BROKER, str(throttled), 1, **dict.fromkeys(rate))
    until_in_sync(group, slow, 2)

    assert copied < 10 == group.ask(new, lambda _: log.log_end_offset)


def test_broker_without_disks_wants_to_stop():
    """Does a broker of several stop when all its log dirs have failed, and not before; do others take over?"""
    with BrokerGroup(3, controllers=1, settings=SETTINGS, log_dirs=2) as group:
        create(group, "lost", partitions=6)
        Writer(group, "lost").write(b"before")
        victim = group.leader_of("lost", 0)

        def fail(broker):
            for log_dir in broker.store.log_dirs:
                assert not broker.broken.is_set()
                held = next(one for one in broker.partitions if log_dir.logs.get(one.log.name) is one.log)
                held.log._break("the disk is broken")
                held.on_flush_failed(StorageFault("the disk is broken"))
            return broker.broken.is_set(), broker.broken_because

        is_broken, reason = group.ask(victim, fail)
        assert is_broken
        assert reason.startswith("All log dirs have failed: ")
        until_led_by_another(group, "lost", victim)
        assert [b"before"] == [value for _, value in read(group, "lost", 1)]
        group.stop(victim)
