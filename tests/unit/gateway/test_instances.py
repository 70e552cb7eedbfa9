"""The life of consumer instances, with consumers that do what they are told."""

import asyncio
from typing import ClassVar

import pytest

from headrace.client.fault import NoBroker
from headrace.gateway import instances as room
from headrace.gateway.instances import InstanceOptions, Instances
from headrace.gateway.problem import Problem
from headrace.settings.gateway import GatewayConfig


class Consumer:
    """A consumer that starts when it may."""

    may_stop = None
    made: ClassVar[list] = []
    may_start = None
    fault = None

    def __init__(self, *, config):
        self.config = config
        self.is_started = self.is_stopped = False
        Consumer.made.append(self)

    async def start(self):
        """Connect."""
        if Consumer.may_start is not None:
            await Consumer.may_start.wait()
        if Consumer.fault is not None:
            raise Consumer.fault
        self.is_started = True

    async def stop(self):
        """Leave."""
        if Consumer.may_stop is not None:
            await Consumer.may_stop.wait()
        self.is_stopped = self.is_started


@pytest.fixture
def consumers(monkeypatch):
    """All consumers that were made."""
    monkeypatch.setattr(room, "AsyncKafkaConsumer", Consumer)
    monkeypatch.setattr(Consumer, "made", [])
    monkeypatch.setattr(Consumer, "may_start", None)
    monkeypatch.setattr(Consumer, "may_stop", None)
    monkeypatch.setattr(Consumer, "fault", None)
    return Consumer.made


def new_instances(**settings):
    return Instances(GatewayConfig({name.replace("_", "."): value for name, value in settings.items()}), {})


ONE = InstanceOptions(name="one")


def test_removed_before_it_began(consumers):
    """Is a consumer stopped that was removed while it was still connecting?"""

    async def story():
        Consumer.may_start = asyncio.Event()
        instances = new_instances()
        creating = asyncio.ensure_future(instances.create("g", ONE))
        await asyncio.sleep(0)
        await instances.remove("g", "one")
        Consumer.may_start.set()
        with pytest.raises(Problem):
            await creating
        return len(instances)

    assert asyncio.run(story()) == 0
    assert [one.is_stopped for one in consumers] == [True]


def test_a_failed_start_frees_the_name(consumers):
    """Can an instance be made whose first attempt failed?"""

    async def story():
        instances = new_instances(consumer_instances_max="1")
        Consumer.fault = NoBroker("Nobody is there")
        with pytest.raises(NoBroker):
            await instances.create("g", ONE)
        Consumer.fault = None
        assert await instances.create("g", ONE) == "one"
        await instances.close()

    asyncio.run(story())
    assert [one.is_stopped for one in consumers] == [False, True]


def test_a_place_is_taken_while_it_is_made(consumers):
    """Is a name, and a place among the most, taken from the moment it is asked for?"""

    async def story():
        Consumer.may_start = asyncio.Event()
        instances = new_instances(consumer_instances_max="1")
        creating = asyncio.ensure_future(instances.create("g", ONE))
        await asyncio.sleep(0)
        for name, code in (("one", 40902), ("two", 429)):
            with pytest.raises(Problem) as refused:
                await instances.create("g", InstanceOptions(name=name))
            assert refused.value.code == code
        Consumer.may_start.set()
        await creating
        await instances.close()

    asyncio.run(story())


def test_one_request_at_a_time(consumers):
    """Does a second request wait for the first, and find nothing if the instance is removed meanwhile?"""

    async def story():
        instances = new_instances()
        await instances.create("g", ONE)
        seen = []

        async def second():
            async with instances.using("g", "one"):
                seen.append("second")

        async with instances.using("g", "one"):
            waiting = asyncio.ensure_future(second())
            await asyncio.sleep(0)
            assert seen == []
        await waiting
        assert seen == ["second"]
        async with instances.using("g", "one"):
            waiting = asyncio.ensure_future(second())
            await asyncio.sleep(0)
            await instances.remove("g", "one")
        with pytest.raises(Problem) as refused:
            await waiting
        assert refused.value.code == 40403

    asyncio.run(story())


def test_nobody_waits_for_one_that_cannot_leave(consumers):
    """Is an instance removed, and does a stop end, though its consumer cannot reach its group?"""

    async def story():
        Consumer.may_stop = asyncio.Event()
        instances = new_instances(shutdown_timeout_ms="0")
        await instances.create("g", ONE)
        await instances.remove("g", "one")
        assert len(instances) == 0
        await instances.create("g", ONE)
        await instances.close()

    asyncio.run(story())
    assert [one.is_stopped for one in consumers] == [False, False]


def test_bounds_of_a_consumer(consumers):
    """Has the consumer a bounded buffer, and is it not thought dead by its group before it is idle here?"""

    async def story():
        instances = new_instances(consumer_instance_idle_ms="600000", response_max_bytes="1048576")
        await instances.create("g", ONE)
        await instances.close()

    asyncio.run(story())
    (consumer,) = consumers
    assert consumer.config["queued.max.messages.kbytes"] == 1024
    assert consumer.config["max.poll.interval.ms"] > 600_000
