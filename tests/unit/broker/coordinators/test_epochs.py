"""Shards come and go with the leadership of their partitions: each answers for its own epoch, or not at all."""

import asyncio
from concurrent.futures import Executor, Future

import pytest

from headrace.broker.coordinators.coordinator import LOADS_AT_ONCE, Coordinator
from headrace.broker.partition import Partition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.coordinator_records import GROUP_RECORDS

from .tally import TOPIC, Tally, mark

WHO = "a"


@pytest.fixture
def tallies(desk):
    """A coordinator of tallies on a real broker."""
    coordinator = Coordinator(desk.broker, TOPIC, GROUP_RECORDS, Tally)
    desk.broker._coordinators[TOPIC.name] = coordinator
    desk.run(coordinator.ensure_topic())
    return coordinator


@pytest.fixture
def held(monkeypatch):
    """Nothing becomes safe before the test says so."""
    held = Held()
    monkeypatch.setattr(Partition, "is_safe", lambda _, offset: False)
    monkeypatch.setattr(Partition, "when_safe", lambda _, offset, done: held.add(offset, done))
    return held


class Held(list):
    """Those who wait for their records to be safe, in order."""

    def __init__(self):
        self._came = asyncio.Event()

    def add(self, offset, done):
        """Somebody waits."""
        self.append((offset, done))
        self._came.set()

    async def last(self):
        """The last who waits, as soon as there is one."""
        self._came.clear()
        if not self:
            await self._came.wait()
        return self.pop()


async def turns(count=20):
    """Let everything that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def refusal(raised):
    """The code somebody heard."""
    return raised.value.code


def test_a_coordinator_is_silent_until_its_log_is_committed(desk, tallies, held):
    """Does a new leader tell nobody of records that it has, but that could still be lost (A12)?"""

    async def lead_again():
        shard = tallies.shard_for(WHO)
        index = shard.index
        mark(shard, WHO)
        tallies.resign([index])
        held.clear()
        await tallies.lead([index])
        offset, committed = await held.last()
        with pytest.raises(KafkaError) as silent:
            tallies.shard_for(WHO)
        committed(None)
        await turns()
        return refusal(silent), offset, tallies.shard_for(WHO).core.marks

    assert desk.run(lead_again()) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, {WHO: 1})


def test_who_waits_hears_of_a_lost_leadership(desk, tallies, held):
    """Are those sent away whose records were written but not committed, and does the late commit change nothing?"""

    async def lose():
        shard = tallies.shard_for(WHO)
        waiting = mark(shard, WHO)
        tallies.resign([shard.index])
        told = await waiting
        (_, done), *_ = held
        done(None)
        with pytest.raises(KafkaError) as gone:
            shard.core  # noqa: B018 - it is the asking that counts
        return told.code, refusal(gone)

    assert desk.run(lose()) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)


def test_a_shard_of_an_older_epoch_writes_nothing(desk, tallies):
    """Is a step refused that was taken before the coordinator heard that the partition is led in a later epoch?"""

    async def late():
        shard = tallies.shard_for(WHO)
        shard.partition.lead(shard.epoch + 1)
        with pytest.raises(KafkaError) as refused:
            mark(shard, WHO)
        with pytest.raises(KafkaError) as marker:
            shard.end_transaction(7, 0, commit=True, coordinator_epoch=0, transaction_version=0)
        return refusal(refused), refusal(marker), shard.partition.log.log_end_offset

    assert desk.run(late()) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


def test_a_partition_led_elsewhere_is_refused(desk, tallies):
    """Does a step fail that comes between the loss of the leadership and the word of it?"""

    async def late():
        shard = tallies.shard_for(WHO)
        shard.partition.follow(shard.epoch + 1)
        with pytest.raises(KafkaError) as refused:
            mark(shard, WHO)
        return refusal(refused), shard.partition.log.log_end_offset

    assert desk.run(late()) == (ErrorCode.NOT_COORDINATOR, 0)


def test_leading_again_loads_afresh(desk, tallies):
    """Does a new epoch have a shard of its own, with all that the log says, and the old one no part in it?"""

    async def again():
        old = tallies.shard_for(WHO)
        await mark(old, WHO)
        await tallies.lead([old.index])
        same = tallies.shard_for(WHO)
        old.partition.lead(old.epoch + 1)
        await tallies.lead([old.index])
        await tallies.lead_all()
        new = tallies.shard_for(WHO)
        return same is old, new is old, old.is_closed, new.epoch - old.epoch, await mark(new, WHO)

    assert desk.run(again()) == (True, False, True, 1, 2)


def test_a_step_of_a_state_that_is_gone(desk, tallies, held):
    """Is what an older state decided not carried out, nor its failure held against the state that came after?"""

    async def reload():
        shard = tallies.shard_for(WHO)
        mark(shard, WHO)
        (_, late), *_ = held
        shard._forget()
        held.clear()
        loading = asyncio.ensure_future(shard.load(desk.broker.readers))
        (await held.last())[1](None)
        await loading
        late(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "it failed"))
        return shard.is_loaded

    assert desk.run(reload()) is True


def test_records_that_do_not_become_safe(desk, tallies, held):
    """Is somebody told in the end that the replicas do not keep up, while what was written may still count?"""

    async def wait():
        shard = tallies.shard_for(WHO)
        shard._write_timeout_s = 0.0
        told = await mark(shard, WHO)
        (_, done), *_ = held
        done(None)
        return told.code, shard.is_loaded, shard.core.marks

    assert desk.run(wait()) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, True, {WHO: 1})


def test_replicas_that_left_after_the_commit(desk, tallies, held):
    """Is a step answered whose record is committed, though too few replicas are in sync by then?"""

    async def leave():
        shard = tallies.shard_for(WHO)
        waiting = mark(shard, WHO)
        (_, done), *_ = held
        done(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "one went"))
        return await waiting, shard.is_loaded

    assert desk.run(leave()) == (1, True)


class Desks(Executor):
    """Threads that begin their work only when the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, work, /, *arguments, **_):
        """Take work on."""
        future = Future()
        self.waiting.append((future, work, arguments))
        return future

    def work(self):
        """Do all that waits."""
        while self.waiting:
            future, work, arguments = self.waiting.pop(0)
            future.set_result(work(*arguments))


def test_loading_is_bounded(desk, tallies, monkeypatch):
    """Do all shards come up when a broker takes over many, and few read their logs at a time?"""
    threads, most = Desks(), 0
    monkeypatch.setattr(desk.broker, "readers", threads)

    async def take_over():
        nonlocal most
        tallies.resign_all()
        await tallies.lead(range(tallies.partition_count))
        while tallies.is_loading:
            await turns()
            most = max(most, len(threads.waiting))
            threads.work()
        return sum(1 for _ in tallies.shards)

    try:
        assert desk.run(take_over()) == tallies.partition_count
    finally:
        monkeypatch.undo()
    assert most == LOADS_AT_ONCE


def test_leading_does_not_wait(desk, tallies, held):
    """Can the metadata go on while a new leader waits for its log to be committed, which may depend on it?"""

    async def lead():
        tallies.resign_all()
        held.clear()
        await tallies.lead(range(tallies.partition_count))
        return tallies.is_loading, list(tallies.shards)

    assert desk.run(lead()) == (True, [])


def test_a_partition_that_is_about_to_be_led(desk, tallies):
    """Is a client told to wait, not to look elsewhere, when this broker is to lead but its log is in the making?"""
    tallies.resign_all()
    with pytest.raises(KafkaError) as early:
        tallies.shard_for(WHO)

    assert refusal(early) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
