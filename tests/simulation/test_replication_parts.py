"""The parts the simulation of replication is made of."""

from random import Random

import pytest

from headrace.cores.replication.messages import AlterPartition
from headrace.model.errors import ErrorCode
from headrace.sim.replication import InvariantBroken, World
from headrace.sim.replication_controller import SESSION_MS, SimulatedController
from headrace.sim.replication_log import Record, SimulatedLog


@pytest.fixture
def controller():
    """A controller of brokers 1, 2 and 3, all in sync, of which two must be."""
    made = SimulatedController((1, 2, 3), min_isr=2, say=lambda line: None, publish=lambda: None)
    for broker_id in (1, 2, 3):
        made.register(broker_id, 1, -1, 0)
    made.create()
    return made


def fence(controller, *silent, at_ms):
    """Let brokers fall silent until they are fenced, and the others not."""
    for broker_id in controller.partition.replicas:
        if broker_id not in silent:
            beat(controller, broker_id, at_ms=at_ms)
    controller.fence_silent(at_ms)


def beat(controller, broker_id, *, at_ms):
    """Let a broker be heard."""
    epoch = controller.brokers[broker_id].broker_epoch
    controller.heartbeat(broker_id, epoch, applied=len(controller.log), wants_shutdown=False, now_ms=at_ms)


def alter(controller, broker_id, isr, *, leader_epoch=None, partition_epoch=None):
    """Ask for another ISR as of now, or as of before."""
    partition = controller.partition
    request = AlterPartition(
        leader_epoch=partition.leader_epoch if leader_epoch is None else leader_epoch,
        partition_epoch=partition.partition_epoch if partition_epoch is None else partition_epoch,
        isr=tuple((replica, -1) if isinstance(replica, int) else replica for replica in isr),
    )
    return controller.alter(broker_id, controller.brokers[broker_id].broker_epoch, request).error


def state(controller):
    """Leader, ISR, ELR and the last leader."""
    partition = controller.partition
    return partition.leader, partition.isr, partition.elr, partition.last_known_leader


def test_election_from_isr_then_elr_then_the_last_leader(controller):
    """Is a leader looked for in the ISR, then the ELR, then in who led last, and nowhere else?"""
    now_ms = SESSION_MS + 1
    fence(controller, 1, at_ms=now_ms)
    assert state(controller) == (2, (2, 3), (), -1)
    now_ms += SESSION_MS + 1
    fence(controller, 1, 2, at_ms=now_ms)
    assert state(controller) == (3, (3,), (2,), -1)
    now_ms += SESSION_MS + 1
    fence(controller, 1, 2, 3, at_ms=now_ms)
    assert state(controller) == (-1, (), (2, 3), 3)

    controller.register(2, 2, -1, now_ms)
    assert state(controller) == (-1, (), (3,), 3)
    controller.register(3, 2, -1, now_ms)
    assert state(controller) == (-1, (), (), 3)
    beat(controller, 2, at_ms=now_ms)
    assert state(controller) == (-1, (), (), 3)
    beat(controller, 3, at_ms=now_ms)
    assert state(controller) == (3, (3,), (), -1)


def test_clean_restart_keeps_its_place(controller):
    """Does a broker that was shut down cleanly stay electable?"""
    for broker_id in (1, 2, 3):
        fence(controller, *range(1, broker_id + 1), at_ms=broker_id * (SESSION_MS + 1))
    controller.register(2, 2, 2, 2000)
    beat(controller, 2, at_ms=2000)

    assert state(controller) == (2, (2,), (3,), -1)


def test_registration_waits_for_the_session(controller):
    """Is a second start refused while the first may still live, and a repeated request answered the same?"""
    assert controller.register(2, 2, -1, 0) is None
    fence(controller, 2, at_ms=SESSION_MS + 1)
    epoch = controller.register(2, 2, -1, SESSION_MS + 1)

    assert epoch == controller.register(2, 2, -1, SESSION_MS + 2) == controller.brokers[2].broker_epoch
    assert len(controller.log) >= epoch


def test_alter_partition(controller):
    """Is an ISR committed that is asked for with the epochs as they are, and any other refused?"""
    assert alter(controller, 1, (1, 2)) is ErrorCode.NONE
    assert controller.partition.isr == (1, 2)
    assert alter(controller, 1, (1,), partition_epoch=1) is ErrorCode.INVALID_UPDATE_VERSION
    assert alter(controller, 1, (1,), leader_epoch=0) is ErrorCode.FENCED_LEADER_EPOCH
    assert alter(controller, 2, (2,)) is ErrorCode.INVALID_REQUEST
    assert alter(controller, 1, (2, 3)) is ErrorCode.INVALID_REQUEST
    assert alter(controller, 1, (1, 2, (3, 99))) is ErrorCode.INELIGIBLE_REPLICA
    assert alter(controller, 1, (1, 2, (3, controller.brokers[3].broker_epoch))) is ErrorCode.NONE


def test_a_log_loses_only_what_was_not_flushed():
    """Does a power cut take any part of the unflushed records, and nothing else?"""
    ends = set()
    for seed in range(30):
        log = SimulatedLog()
        for sequence in range(6):
            log.append(Record(1 + sequence // 2, 0, sequence))
        log.recovery_point = 3
        log.assign_epoch(9, 6)
        log.crash(Random(seed), loses_page_cache=True)
        ends.add(log.log_end_offset)

        assert log.last_sequence(0) == log.log_end_offset - 1
        assert log.end_offset_for_epoch(9) == (-1, -1)
    assert ends == {3, 4, 5, 6}


def test_a_flush_from_before_a_truncation():
    """Does a flush that began before a truncation say nothing about what came after?"""
    log = SimulatedLog()
    log.append(Record(1, 0, 0))
    generation = log.generation
    log.truncate_to(0)
    log.append(Record(2, 0, 0))
    log.flushed(1, generation)

    assert log.recovery_point == 0


def test_a_finding_says_how_to_repeat_it():
    """Does a failed run name its seed, what was wrong, what happened last, and how to have it again?"""
    world = World(5, replicas=3, flushes=True)
    with pytest.raises(InvariantBroken) as broken:
        world.checker.acknowledged(0, 101, 0)

    assert broken.value.invariant == "acknowledged"
    assert str(broken.value).startswith("seed 5: acknowledged: 101:0 at 0")
    assert "again: World(5, replicas=3, flushes=True).run()" in str(broken.value)
