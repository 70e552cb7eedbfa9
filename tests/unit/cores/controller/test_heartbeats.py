"""Heartbeats, sessions and controlled shutdown."""

import pytest

from controller_shell import SESSION_MS, ControllerShell, directories
from headrace.cores.controller.broker_changes import unfenced
from headrace.cores.controller.directories import DirectoryAssignment, assign_replicas_to_dirs
from headrace.cores.controller.heartbeats import Heartbeat, HeartbeatReply, fence_stale_broker, heartbeat
from headrace.cores.controller.liveness import Liveness
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)

SERVING = HeartbeatReply(is_caught_up=True, is_fenced=False, should_shut_down=False)
WAITING = HeartbeatReply(is_caught_up=False, is_fenced=True, should_shut_down=False)
GOING = HeartbeatReply(is_caught_up=True, is_fenced=True, should_shut_down=True)


def test_broker_is_unfenced_once_it_knows_its_registration():
    """Does a broker serve only when it has read the metadata up to its own registration, and if it wants to?"""
    cluster = ControllerShell()
    epoch = cluster.register(1)

    assert WAITING == cluster.beat(1, offset=epoch - 1)
    assert cluster.beat(1, wants_fence=True).is_fenced
    assert SERVING == cluster.beat(1, offset=epoch)
    assert not cluster.metadata.brokers[1].fenced


def test_heartbeats_of_a_serving_broker_write_nothing():
    """Is a healthy broker's heartbeat free?"""
    cluster = ControllerShell(brokers=1)
    before = cluster.next_offset

    assert SERVING == cluster.beat(1)
    assert before == cluster.next_offset


def test_stale_broker_epoch_is_refused():
    """Is a heartbeat of a process that is not the registered one refused, without keeping the session alive?"""
    cluster = ControllerShell(brokers=1)
    cluster.now_ms += SESSION_MS + 1

    with pytest.raises(KafkaError) as refused:
        heartbeat(
            cluster.metadata,
            cluster.liveness,
            Heartbeat(broker_id=1, broker_epoch=0, metadata_offset=9),
            next_offset=cluster.next_offset,
            now_ms=cluster.now_ms,
        )

    assert ErrorCode.STALE_BROKER_EPOCH == refused.value.code
    assert [1] == cluster.liveness.stale(cluster.now_ms)


def test_silent_broker_is_fenced_and_its_partitions_fail_over():
    """Does a broker whose session ran out lose its leaderships before it is fenced, and just what it held?"""
    cluster = ControllerShell(brokers=4)
    cluster.create("a", (1, 2, 3), (2, 3, 1), (2, 3, 4))
    before = cluster.next_offset

    cluster.silence(1)

    assert [2, 2, 2] == [cluster.partition("a", index).leader for index in range(3)]
    assert [(2, 3), (2, 3), (2, 3, 4)] == [cluster.partition("a", index).isr for index in range(3)]
    assert [PartitionChangeRecord, PartitionChangeRecord, BrokerRegistrationChangeRecord] == [
        type(record) for record in cluster.records[before:]
    ]
    assert cluster.metadata.brokers[1].fenced


def test_stale_brokers_are_fenced_one_by_one_the_longest_silent_first():
    """Is each fenced on what the one before left, and none twice?"""
    cluster = ControllerShell(brokers=3)
    cluster.create("a", (1, 2, 3))
    cluster.now_ms += 100
    cluster.beat(1)
    cluster.now_ms += SESSION_MS + 1

    fenced = [cluster.run(fence_stale_broker, cluster.liveness, now_ms=cluster.now_ms) for _ in range(4)]

    assert [2, 3, 1, None] == fenced
    assert ((1,), -1) == (cluster.partition("a").isr, cluster.partition("a").leader)


def test_next_check_is_when_the_first_session_runs_out():
    """Is the controller told when to look, and does nothing happen before?"""
    cluster = ControllerShell()
    assert None is cluster.liveness.next_check_ms()
    cluster.register(1)
    assert None is cluster.liveness.next_check_ms()
    cluster.beat(1)
    at_ms = cluster.liveness.next_check_ms()

    assert cluster.now_ms + SESSION_MS + 1 == at_ms
    assert [] == cluster.liveness.stale(at_ms - 1)
    assert [1] == cluster.liveness.stale(at_ms)


def test_new_controller_gives_every_broker_a_whole_session():
    """Is nobody fenced because the last controller is gone?"""
    cluster = ControllerShell(brokers=2)
    cluster.register(3)
    now_ms = cluster.now_ms + 10 * SESSION_MS

    liveness = Liveness(cluster.metadata, session_timeout_ms=SESSION_MS, now_ms=now_ms)

    assert [] == liveness.stale(now_ms + SESSION_MS)
    assert [1, 2] == liveness.stale(now_ms + SESSION_MS + 1)


def test_returning_broker_leads_what_nobody_led():
    """Does a partition get its leader back with the broker that has its data?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1,), (2,))
    cluster.silence(1)
    assert [-1, 2] == [cluster.partition("a", index).leader for index in range(2)]

    assert SERVING == cluster.beat(1)

    assert [1, 2] == [cluster.partition("a", index).leader for index in range(2)]


def test_unfencing_does_not_touch_partitions_with_a_leader():
    """Are only leaderless partitions looked at when a broker comes?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))
    cluster.silence(1)

    records = unfenced(cluster.metadata, cluster.metadata.brokers[1], cluster.policy)

    assert [BrokerRegistrationChangeRecord] == [type(record) for record in records]


def test_controlled_shutdown_in_steps():
    """Are leaders moved first, and does the broker go when every other one knows?"""
    cluster = ControllerShell(brokers=3)
    cluster.create("a", (1, 2), (3, 1))

    first = cluster.beat(1, wants_shutdown=True)
    assert SERVING == first
    assert [2, 3] == [cluster.partition("a", index).leader for index in range(2)]
    assert [(2,), (3,)] == [cluster.partition("a", index).isr for index in range(2)]
    assert cluster.metadata.brokers[1].in_controlled_shutdown

    cluster.beat(2)
    assert SERVING == cluster.beat(1, wants_shutdown=True), "broker 3 may still send clients here"
    cluster.beat(3)
    assert GOING == cluster.beat(1, wants_shutdown=True)
    assert cluster.metadata.brokers[1].fenced


def test_broker_that_leads_nothing_goes_at_once():
    """Is there nothing to wait for without leaderships, or when the broker is fenced, or wants to be?"""
    cluster = ControllerShell(brokers=3)
    cluster.create("a", (3,))
    cluster.register(4)

    assert GOING == cluster.beat(1, wants_shutdown=True)
    assert cluster.beat(4, wants_shutdown=True).should_shut_down
    assert GOING == cluster.beat(3, wants_shutdown=True, wants_fence=True)
    assert -1 == cluster.partition("a").leader


def test_last_broker_may_go_too():
    """Does the last broker not wait for others that are not there?"""
    cluster = ControllerShell(brokers=1)
    cluster.create("a", (1,))

    assert not cluster.beat(1, wants_shutdown=True).should_shut_down
    assert -1 == cluster.partition("a").leader
    assert GOING == cluster.beat(1, wants_shutdown=True)


def test_broker_fenced_amid_its_shutdown_does_not_serve_again():
    """Must one that was about to stop come back as another process?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))
    cluster.beat(1, wants_shutdown=True)
    cluster.silence(1)

    assert cluster.beat(1).is_fenced
    cluster.now_ms += SESSION_MS + 1
    cluster.register(1)
    assert SERVING == cluster.beat(1)


def test_new_controller_carries_on_with_a_shutdown():
    """Does a broker that asked the last controller to let it go get there with the next one?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))
    cluster.beat(1, wants_shutdown=True)
    cluster.commit([PartitionChangeRecord(topic_id=cluster.metadata.topics["a"].topic_id, partition_id=0, leader=1)])
    cluster.liveness = Liveness(cluster.metadata, session_timeout_ms=SESSION_MS, now_ms=cluster.now_ms)
    before = cluster.next_offset

    assert not cluster.beat(1, wants_shutdown=True).should_shut_down

    assert before == cluster.next_offset, "it is known already that it stops"
    cluster.commit([PartitionChangeRecord(topic_id=cluster.metadata.topics["a"].topic_id, partition_id=0, leader=2)])
    cluster.beat(2)
    assert GOING == cluster.beat(1, wants_shutdown=True)


def test_session_of_a_broker_that_is_gone_ends_quietly():
    """Does a session whose broker is not registered any more fence nobody?"""
    cluster = ControllerShell(brokers=2)
    epoch = cluster.metadata.brokers[1].broker_epoch
    cluster.commit([UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch)])

    cluster.silence()

    assert not cluster.metadata.brokers[2].fenced
    assert [] == cluster.liveness.stale(cluster.now_ms)


def test_broker_may_ask_to_be_fenced():
    """Is a serving broker fenced at its own wish?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))

    assert cluster.beat(1, wants_fence=True).is_fenced
    assert 2 == cluster.partition("a").leader


def test_lost_log_dir_takes_its_replicas_out():
    """Does a failed dir make others lead what was in it, and leave alone what was not?"""
    cluster = ControllerShell(brokers=1)
    cluster.register(2, dirs=2)
    cluster.beat(2)
    cluster.create("a", (2, 1), (2, 1))
    dirs = directories(2, 2)
    assign(cluster, 2, dirs[0], 0)
    assign(cluster, 2, dirs[1], 1)

    assert SERVING == cluster.beat(2, offline_log_dirs=dirs[:1])

    assert [(1, (1,)), (2, (2, 1))] == [(state.leader, state.isr) for state in cluster.metadata.topics["a"].partitions]
    assert dirs[1:] == cluster.metadata.brokers[2].log_dirs
    before = cluster.next_offset
    cluster.beat(2, offline_log_dirs=dirs[:1])
    assert before == cluster.next_offset, "it is told once"


def test_broker_without_any_log_dir_is_fenced():
    """Does a broker that lost all its dirs lead nothing, and not come back as it is?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))

    for _ in range(2):
        assert cluster.beat(1, offline_log_dirs=directories(1)).is_fenced
    assert (2, (2,)) == (cluster.partition("a").leader, cluster.partition("a").isr)


def test_dirs_lost_before_serving_are_known_first():
    """Is a broker that starts with a failed dir not elected for what was in it?"""
    cluster = ControllerShell(brokers=1)
    cluster.register(2, dirs=2)
    cluster.beat(2)
    cluster.create("a", (2,))
    assign(cluster, 2, directories(2, 2)[0], 0)
    cluster.silence(2)

    assert cluster.beat(2, offline_log_dirs=directories(2, 2)[:1]).is_fenced
    assert SERVING == cluster.beat(2, offline_log_dirs=directories(2, 2)[:1])
    assert -1 == cluster.partition("a").leader


def assign(cluster: ControllerShell, broker_id: int, directory, index: int) -> None:
    """A broker says where its replica of topic `a` is."""
    topic_id = cluster.metadata.topics["a"].topic_id
    wanted = DirectoryAssignment(directory=directory, topic_id=topic_id, partition=index)
    epoch = cluster.metadata.brokers[broker_id].broker_epoch
    assert [ErrorCode.NONE] == cluster.run(
        assign_replicas_to_dirs, broker_id=broker_id, broker_epoch=epoch, wanted=[wanted]
    )
