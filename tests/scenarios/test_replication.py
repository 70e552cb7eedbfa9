"""Three brokers on real sockets and files: what is acknowledged stays, whoever leads."""

import threading

import pytest

from cluster_shell import BrokerGroup
from scenarios.replicated import (
    Writer,
    bytes_of,
    create,
    partition_of,
    read,
    until_in_sync,
    until_led_by_another,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def group():
    """Three brokers that are controllers too; no test of those that share it leaves one of them down."""
    with BrokerGroup(3) as group:
        yield group


def test_acknowledged_records_survive_their_leader(group):
    """Is everything there, once and in order, that was acknowledged before and after the leader was killed?"""
    create(group, "survive")
    writer = Writer(group, "survive")
    writer.write(*(b"a%d" % number for number in range(100)))
    leader = group.leader_of("survive", 0)

    group.kill(leader)
    writer.write(*(b"b%d" % number for number in range(100)))
    found = read(group, "survive", 200)
    group.start(leader)

    assert [] == writer.failed
    assert sorted(writer.acked) == found
    assert [b"a%d" % number for number in range(100)] == [value for _, value in found[:100]]
    until_in_sync(group, "survive", 3)


def test_writes_go_on_while_brokers_come_and_go(group):
    """Does a producer that never stops lose or double anything while one leader after the other is killed?"""
    create(group, "turns")
    writer = Writer(group, "turns")
    done = threading.Event()

    def keep_writing():
        number = 0
        while not done.is_set():
            writer.write(*(b"%d" % (number + step) for step in range(20)))
            number += 20

    writing = threading.Thread(target=keep_writing)
    writing.start()
    try:
        for _ in range(3):
            writer.until_more()
            node = group.leader_of("turns", 0)
            group.kill(node)
            until_led_by_another(group, "turns", node)
            group.start(node)
            until_in_sync(group, "turns", 3)
    finally:
        done.set()
        writing.join()

    assert [] == writer.failed
    assert len(writer.acked) >= 60
    assert [(offset, b"%d" % offset) for offset in range(len(writer.acked))] == sorted(writer.acked)
    assert sorted(writer.acked) == read(group, "turns", len(writer.acked))


def test_follower_catches_up(group):
    """Has a follower that was away the very bytes of its leader in the end, and is it in sync again?"""
    create(group, "away", segment_bytes="1048576", min_insync_replicas="1")
    writer = Writer(group, "away")
    leader = group.leader_of("away", 0)
    follower = next(node for node in (1, 2, 3) if node != leader)
    group.stop(follower)
    writer.write(*(b"%d" % number + b"x" * 10_000 for number in range(500)))

    group.start(follower)
    until_in_sync(group, "away", 3)
    writer.write(b"the last")

    assert bytes_of(group, leader, "away")
    assert bytes_of(group, leader, "away") == bytes_of(group, follower, "away")


def test_follower_drops_what_was_never_acknowledged(group):
    """Does a leader that comes back give up what only it had, and have the new leader's records instead?"""
    create(group, "tail", min_insync_replicas="1")
    Writer(group, "tail").write(b"kept")
    leader = group.leader_of("tail", 0)
    for node in group.brokers:
        if node != leader:
            group.ask(node, lambda broker: broker.replicas._fetchers.stop())
    Writer(group, "tail", acks="1", **{"enable.idempotence": False}).write(b"lost 1", b"lost 2")
    group.kill(leader)
    until_led_by_another(group, "tail", leader)
    for node in tuple(group.brokers):
        group.restart(node)
    Writer(group, "tail").write(b"new")
    group.start(leader)
    until_in_sync(group, "tail", 3)

    assert [b"kept", b"new"] == [value for _, value in read(group, "tail", 2)]
    assert 2 == partition_of(group, leader, "tail").log.log_end_offset
    assert len({bytes_of(group, node, "tail") for node in (1, 2, 3)}) == 1
