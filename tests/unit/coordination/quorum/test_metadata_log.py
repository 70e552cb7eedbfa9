"""The metadata log: decisions in, decisions out, cut and begun again."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from headrace.coordination.quorum.fetch_messages import read_batches
from headrace.cores.raft.outputs import AppendControl, KRaftVersion, LeaderChange, Voters
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import NoOpRecord, TopicRecord

VOTERS = VoterSet([Voter(ReplicaKey(1, UUID(int=999)), (Endpoint("CONTROLLER", "one", 9093),))])


def topics(*numbers):
    """Records of some topics."""
    return [TopicRecord(name=f"topic-{n}", topic_id=UUID(int=n + 1000)) for n in numbers]


def lead(log, epoch, *others):
    """Begin an epoch as its leader."""
    log.append_control(AppendControl(log.end_offset, epoch, (LeaderChange(1, (1,), (1,)), *others)))


def decisions(log, offset, limit):
    """The decisions in a part of the log."""
    return asyncio.run(log.decisions(offset, limit))


async def flushed(log, generation=0):
    """Flush, and what was told."""
    told = asyncio.get_running_loop().create_future()
    log.flush(log.end_offset, generation, lambda *facts: told.set_result(facts), told.set_exception)
    return await told


def test_a_decision_is_one_batch(shelf):
    """Does a decision come back whole, with its epoch, and a control batch as one without records?"""
    log = shelf.open_log()
    lead(log, 3)
    log.append_decision(topics(1, 2, 3), 3)

    control, decision = decisions(log, 0, log.end_offset)

    assert (0, 1, 3, ()) == (control.base_offset, control.end_offset, control.epoch, control.records)
    assert (1, 4, 3, topics(1, 2, 3)) == (decision.base_offset, decision.end_offset, decision.epoch, decision.records)


def test_the_outline(shelf):
    """Are the epochs with their first offsets and the voter sets with their places found in the log?"""
    log = shelf.open_log()
    lead(log, 1)
    log.append_decision(topics(1), 1)
    lead(log, 4, KRaftVersion(1), Voters(VOTERS))

    outline = log.outline()

    assert [(1, 0), (4, 2)] == outline.epochs
    assert [(4, VOTERS)] == outline.voters


def test_a_follower_has_the_leaders_bytes(shelf):
    """Is what a leader's log holds the same after it was appended as fetched?"""
    log = shelf.open_log()
    lead(log, 2)
    log.append_decision(topics(1, 2), 2)
    data = log.find(0, 1 << 20).load()
    shelf.close_log()
    other = type(shelf)()
    follower = other.open_log()

    follower.append_fetched(read_batches(data))

    assert data == follower.find(0, 1 << 20).load()
    assert follower.log.latest_epoch == 2
    other.close()


def test_flushing_tells_how_far(shelf, play):
    """Is a flush told with the end of the log as it was when it began, and is it safe then?"""
    log = shelf.open_log()
    log.append_decision(topics(1, 2), 1)

    assert play(flushed(log, generation=5)) == (2, 5)
    shelf.files.power_cut()
    shelf.log_dir.abandon()

    assert [topics(1, 2)] == [decision.records for decision in decisions(shelf.open_log(), 0, 2)]


def test_flushes_share(shelf, play):
    """Is what is asked for while a flush runs done in one more, however often it is asked?"""
    log = shelf.open_log()

    async def scene():
        told = []
        enough = asyncio.Event()

        def flushed(offset, generation):
            told.append(offset)
            if offset == 10:
                enough.set()

        for number in range(10):
            log.append_decision(topics(number), 1)
            log.flush(log.end_offset, 0, flushed, pytest.fail)
        await enough.wait()
        await log.quiet()
        return told

    told = play(scene())

    assert told[-1] == 10
    assert len(told) <= 2


def test_a_failed_flush_is_told(shelf, play):
    """Is the owner told when the disk refuses a flush?"""
    log = shelf.open_log()
    log.append_decision(topics(1), 1)
    shelf.files.fail_next("fsync")

    with pytest.raises(StorageFault):
        play(flushed(log))


def test_truncating(shelf, play):
    """Is what was cut off gone for good, also if the power fails, and does the log go on from there?"""
    log = shelf.open_log()
    for number in range(5):
        log.append_decision(topics(number), number + 1)

    async def scene():
        await flushed(log)
        await log.truncate(2)
        shelf.files.power_cut(Random(1))

    play(scene())
    shelf.log_dir.abandon()
    again = shelf.open_log()

    assert 2 == again.end_offset
    assert [(1, 0), (2, 1)] == again.outline().epochs


def test_truncating_waits_for_the_flush(shelf, play):
    """Is a cut that comes while a flush runs made after it, and does the flush not count for what comes then?"""
    log = shelf.open_log()

    async def scene():
        log.append_decision(topics(1, 2, 3), 1)
        told = []
        log.flush(3, 0, lambda *facts: told.append(facts), pytest.fail)
        await log.truncate(0)
        return told

    assert play(scene()) == [(3, 0)]
    assert 0 == log.end_offset == log.log.recovery_point


def test_beginning_again(shelf, play):
    """Does a log that was emptied for a snapshot begin there, after a power cut too?"""
    log = shelf.open_log()

    async def scene():
        log.append_decision(topics(1, 2, 3), 1)
        await flushed(log)
        await log.begin_again(100)
        log.append_decision([NoOpRecord()], 2)
        await flushed(log)
        shelf.files.power_cut(Random(2))

    play(scene())
    shelf.log_dir.abandon()
    again = shelf.open_log()

    assert (100, 101) == (again.start_offset, again.end_offset)
    assert [(2, 100)] == again.outline().epochs


def test_raising_the_start(shelf, play):
    """Do segments go that lie before the new start, and does the start survive a crash?"""
    log = shelf.open_log(segment_bytes=200)

    async def scene():
        for number in range(10):
            log.append_decision(topics(number), 1)
        await flushed(log)
        log.committed(10)
        await log.raise_start(6)
        shelf.files.power_cut(Random(3))

    play(scene())
    shelf.log_dir.abandon()
    again = shelf.open_log(segment_bytes=200)

    assert (6, 10) == (again.start_offset, again.end_offset)
    assert topics(6) == decisions(again, 6, 10)[0].records
    assert min(int(name[:20]) for name in shelf.files.listdir(again.log.path) if name.endswith(".log")) > 0


def test_damage_is_not_passed_over(shelf, play):
    """Is a log with a harmed batch refused as a whole, rather than read around the harm?"""
    log = shelf.open_log()
    for number in range(3):
        log.append_decision(topics(number), 1)
    play(flushed(log))
    shelf.files.flip_bit(f"{log.log.path}/00000000000000000000.log", 120)

    with pytest.raises(StorageFault):
        log.outline()
    with pytest.raises(StorageFault):
        decisions(log, 0, 3)


def test_a_full_disk_leaves_the_log_as_it_was(shelf):
    """Is a decision that does not fit refused, and does the next one that does go in?"""
    log = shelf.open_log()
    log.append_decision(topics(1), 1)
    shelf.files.fail_next("write", 28)

    with pytest.raises(StorageFault):
        log.append_decision(topics(2), 1)
    log.append_decision(topics(3), 1)

    assert [topics(1), topics(3)] == [decision.records for decision in decisions(log, 0, 2)]
