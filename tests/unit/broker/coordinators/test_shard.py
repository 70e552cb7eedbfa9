"""A core on its partition: steps, replies, timers, and what is left after the log failed."""

import asyncio
import errno

import pytest

from headrace.broker.coordinators.coordinator import Coordinator, CoordinatorTopic, java_hash
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue
from headrace.wire.coordinator_records import GROUP_RECORDS

TOPIC = CoordinatorTopic(
    name="__tallies",
    partitions="offsets.topic.num.partitions",
    replication_factor="offsets.topic.replication.factor",
    configs=lambda _: {"cleanup.policy": "compact"},
)


class Tally:
    """A core that counts: a mark is a record, and whoever waits for a count is told when it is reached."""

    def __init__(self):
        self.marks = {}
        self.waiting = []
        self.rings = []
        self.rang = asyncio.Event()

    def replay(self, key, value, producer_id=-1):
        """Take a mark in."""
        self.marks[key.group] = value.offset

    def replay_end(self, producer_id, *, commit):
        """Nothing here is part of a transaction."""

    def loaded(self, now_ms):
        """Nothing to do."""
        return Outcome()

    def on_timer(self, key, now_ms):
        """Ring."""
        self.rings.append(key)
        self.rang.set()
        return Outcome()

    def mark(self, name, token, now_ms):
        """Count one more and answer with the count; those who waited for it too."""
        outcome = Outcome()
        key, value = OffsetCommitKey(group=name), OffsetCommitValue(offset=self.marks.get(name, 0) + 1)
        self.replay(key, value)
        outcome.records.append((key, value))
        for waiter in self.waiting:
            outcome.reply(waiter, self.marks[name])
        self.waiting.clear()
        return outcome.reply(token, self.marks[name])

    def wait(self, token, now_ms):
        """Be told of the next mark."""
        self.waiting.append(token)
        return Outcome()


@pytest.fixture
def tallies(desk):
    """A coordinator of tallies on a real broker."""
    coordinator = Coordinator(desk.broker, TOPIC, GROUP_RECORDS, Tally)

    async def begin():
        await coordinator.ensure_topic()
        await coordinator.lead_all()

    desk.run(begin())
    return coordinator


def test_a_reply_comes_when_its_record_is_safe(desk, tallies):
    """Is a step answered, its record in the log and on disk by then?"""

    async def mark_twice():
        shard = tallies.shard_for("a")
        answers = [await shard.ask(lambda token, now: shard.core.mark("a", token, now)) for _ in range(2)]
        return answers, shard.partition.log.recovery_point

    assert desk.run(mark_twice()) == ([1, 2], 2)


def test_a_reply_may_come_from_a_later_step(desk, tallies):
    """Can one who waits be answered by what somebody else does?"""

    async def wait_for_mark():
        shard = tallies.shard_for("a")
        waiting = asyncio.ensure_future(shard.ask(shard.core.wait))
        await asyncio.sleep(0)
        await shard.ask(lambda token, now: shard.core.mark("a", token, now))
        return await waiting

    assert desk.run(wait_for_mark()) == 1


def test_the_log_gives_the_state_back(desk, tallies):
    """Does a coordinator that starts again know what it knew?"""

    async def mark():
        for name in ("a", "b", "a"):
            shard = tallies.shard_for(name)
            await shard.ask(lambda token, now, shard=shard, name=name: shard.core.mark(name, token, now))
        before = {shard.index: shard.core.marks for shard in tallies.shards}
        tallies.resign_all()
        await tallies.lead_all()
        return before, {shard.index: shard.core.marks for shard in tallies.shards}

    before, after = desk.run(mark())
    assert before == after
    assert {"a": 2} in after.values()


def test_who_waits_is_told_when_the_coordinator_goes(desk, tallies):
    """Does resigning answer everyone who waits, so that they look for the new coordinator?"""

    async def wait_and_resign():
        shard = tallies.shard_for("a")
        waiting = asyncio.ensure_future(shard.ask(shard.core.wait))
        await asyncio.sleep(0)
        tallies.resign_all()
        with pytest.raises(KafkaError) as refused:
            await waiting
        return refused.value.code

    assert desk.run(wait_and_resign()) == ErrorCode.NOT_COORDINATOR


def test_a_log_that_refuses_leaves_no_state_behind(desk, tallies):
    """Is a mark that could not be written forgotten, and the asker told to try again?"""

    async def fail():
        shard = tallies.shard_for("a")
        await shard.ask(lambda token, now: shard.core.mark("a", token, now))
        desk.files.fail_next("write", errno.ENOSPC, path_contains="__tallies")
        with pytest.raises(KafkaError) as refused:
            await shard.ask(lambda token, now: shard.core.mark("a", token, now))
        assert not shard.is_loaded
        await shard.load(desk.broker.readers)
        return refused.value.code, shard.core.marks

    assert desk.run(fail()) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, {"a": 1})


def test_a_timer_wakes_the_core_once(desk, tallies):
    """Does a timer that was moved ring once, and a cancelled one not at all?"""

    async def ring():
        shard = tallies.shard_for("a")

        def step(now_ms):
            outcome = Outcome()
            outcome.wake(("late",), now_ms + 3_600_000)
            outcome.wake(("late",), now_ms)
            outcome.wake(("never",), now_ms)
            outcome.cancel(("never",))
            return outcome

        shard.act(step)
        await asyncio.wait_for(shard.core.rang.wait(), 10)
        return shard.core.rings

    assert desk.run(ring()) == [("late",)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", 0), ("日本", 835047), ("😀", 1772899)],
)
def test_hashing_is_javas(text, expected):
    """Does every key fall where Kafka lets it fall?"""
    assert java_hash(text) == expected


def test_who_asks_while_the_topic_is_made_waits_for_its_coordinators(desk):
    """Can everyone who was told where the coordinator is talk to it, also those who came second?"""
    coordinator = desk.broker.groups
    known, lead = asyncio.Event(), coordinator.lead

    async def lead_late(indexes):
        # By now the metadata knows the topic, and nobody leads it yet.
        known.set()
        await asyncio.sleep(0)
        await lead(indexes)

    async def second():
        await known.wait()
        await coordinator.ensure_topic()
        return coordinator.shard_for("g").is_loaded

    async def both():
        coordinator.lead = lead_late
        return await asyncio.gather(coordinator.ensure_topic(), second())

    assert desk.run(both())[1] is True
