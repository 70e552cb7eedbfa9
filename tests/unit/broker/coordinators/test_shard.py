"""A core on its partition: steps, replies, timers, and what is left after the log failed."""

import asyncio
import errno

import pytest

from headrace.broker.coordinators.coordinator import Coordinator, java_hash
from headrace.broker.partition import Partition
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.coordinator_records import GROUP_RECORDS

from .tally import TOPIC, Tally


@pytest.fixture
def tallies(desk):
    """A coordinator of tallies on a real broker."""
    coordinator = Coordinator(desk.broker, TOPIC, GROUP_RECORDS, Tally)
    desk.broker._coordinators[TOPIC.name] = coordinator
    desk.run(coordinator.ensure_topic())
    desk.run(coordinator.lead_all())
    return coordinator


def test_a_reply_comes_when_its_record_is_safe(desk, tallies):
    """Is a step answered, its record in the log and on disk by then?"""

    async def mark_twice():
        shard = tallies.shard_for("a")
        answers = [await shard.ask(lambda token, now: shard.core.mark("a", token, now)) for _ in range(2)]
        return answers, shard.partition.log.recovery_point

    assert desk.run(mark_twice()) == ([1, 2], 2)


def test_a_reply_that_is_true_already_is_there_at_once(desk, tallies):
    """Has somebody whose step writes nothing the answer without waiting, unless something before it is not safe yet?"""

    async def look():
        shard = tallies.shard_for("a")
        first = shard.begin(lambda token, now: Outcome().reply(token, "nothing before"))
        marking = shard.begin(lambda token, now: shard.core.mark("a", token, now))
        second = shard.begin(lambda token, now: Outcome().reply(token, "behind a mark"))
        done = first.done(), marking.done(), second.done()
        return done, await first, await marking, await second

    assert desk.run(look()) == ((True, False, False), "nothing before", 1, "behind a mark")


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


@pytest.fixture
def short_of_replicas(tallies, monkeypatch):
    """Has the partition of a shard lack replicas until told otherwise."""
    lacks = [True]

    def check(partition):
        if lacks:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

    monkeypatch.setattr(Partition, "check_enough_replicas", check)
    return lacks


def test_nothing_is_written_with_too_few_replicas(desk, tallies, short_of_replicas):
    """Is a step that may write refused before it is taken, one that looks answered, and is all well afterwards?"""

    async def mark():
        shard = tallies.shard_for("a")

        def step(token, now_ms):
            return shard.core.mark("a", token, now_ms)

        with pytest.raises(KafkaError) as refused:
            await shard.ask(step)
        seen = await shard.look(lambda token, _: Outcome().reply(token, dict(shard.core.marks)))
        short_of_replicas.clear()
        return refused.value.code, seen, await shard.ask(step), shard.partition.log.log_end_offset

    assert desk.run(mark()) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, {}, 1, 1)


def test_a_timer_waits_for_replicas(desk, tallies, monkeypatch):
    """Does a timer that runs out with too few replicas ring as soon as there are enough, and once?"""
    monkeypatch.setattr("headrace.broker.coordinators.shard._TIMER_RETRY_S", 0.001)

    async def ring():
        shard = tallies.shard_for("a")
        tries = []

        def check(partition):
            if partition is not shard.partition:
                return  # another coordinator's, which has its own timers
            tries.append(list(shard.core.rings))
            if len(tries) < 3:
                raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

        monkeypatch.setattr(Partition, "check_enough_replicas", check)
        outcome = Outcome()
        outcome.wake(("late",), 0)
        shard.act(lambda now_ms: outcome)
        await asyncio.wait_for(shard.core.rang.wait(), 10)
        return tries[:3], shard.core.rings

    assert desk.run(ring()) == ([[], [], []], [("late",)])


def test_a_fault_that_is_told_again_and_again(desk, tallies):
    """Does a fault that many are told not remember every place it was raised at?"""

    async def refuse():
        shard = tallies.shard_for("a")
        fault = shard.partition.fault = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "gone")
        depths = []
        for _ in range(3):
            with pytest.raises(KafkaError):
                shard._check_leads()
            trace, depth = fault.__traceback__, 0
            while trace is not None:
                trace, depth = trace.tb_next, depth + 1
            depths.append(depth)
        shard.partition.fault = None
        return depths

    depths = desk.run(refuse())
    assert len(set(depths)) == 1


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


def test_long_keys_are_hashed_as_short_ones():
    """Does a key fall where Kafka lets it fall that is too long to be remembered?"""
    expected = sum(ord("a") * 31**place for place in range(300)) % 2**32
    assert java_hash("a" * 300) % 2**32 == expected


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
