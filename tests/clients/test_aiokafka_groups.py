"""aiokafka in groups and with transactions."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import aiokafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import OffsetAndMetadata

from clients.libraries import DEADLINE_S, Confluent, Sent, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
by_assignor = pytest.mark.parametrize("assignor", ASSIGNORS)


def run(story: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
    """Run a test's story to its end; every client it entered is stopped."""

    async def whole() -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(4 * DEADLINE_S):
                await story(stack)

    asyncio.run(whole())


async def joined(stack: AsyncExitStack, broker, group: str, topic: str, assignor: str = "range", **settings):
    """A member of a group, started."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        partition_assignment_strategy=(ASSIGNORS[assignor],),
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        session_timeout_ms=6000,
        retry_backoff_ms=10,
        **{"enable_auto_commit": False, **settings},
    )
    await consumer.start()
    stack.push_async_callback(consumer.stop)
    return consumer


async def until(consumers, is_so: Callable[[list], bool], what: str) -> list:
    """Poll them in turn until something is so; gives the records that came meanwhile."""
    records = []
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not is_so(records):
                for consumer in consumers:
                    found = await consumer.getmany(timeout_ms=20)
                    records += [record for batch in found.values() for record in batch]
    except TimeoutError:
        raise AssertionError(f"{what}: {[consumer.assignment() for consumer in consumers]}") from None
    return records


async def until_share(consumers, partitions: int) -> None:
    """Poll until they hold all partitions, evenly."""

    def is_so(_) -> bool:
        held = [consumer.assignment() for consumer in consumers]
        numbers = sorted(place.partition for one in held for place in one)
        return numbers == list(range(partitions)) and {len(one) for one in held} == {partitions // len(consumers)}

    await until(consumers, is_so, f"{len(consumers)} share {partitions}")


@by_assignor
def test_members_come_and_go(broker, topic, group, assignor):
    """Do aiokafka's members share a topic evenly as they come and go (R22)?"""
    create_topic(broker.bootstrap, topic, partitions=6)

    async def story(stack) -> None:
        first = await joined(stack, broker, group, topic, assignor)
        await until_share([first], 6)
        second = await joined(stack, broker, group, topic, assignor)
        await until_share([first, second], 6)
        third = await joined(stack, broker, group, topic, assignor)
        await until_share([first, second, third], 6)
        await second.stop()
        await until_share([first, third], 6)

    run(story)


@by_assignor
def test_every_record_once(broker, topic, group, assignor):
    """Does the next member go on after what was committed, without loss or repeat (R23)?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    every = [Sent(value=b"%d" % n, partition=n % 2) for n in range(40)]
    records = []

    async def story(stack) -> None:
        first = await joined(stack, broker, group, topic, assignor)
        records.extend(await until([first], lambda seen: len(seen) >= 20, "the first twenty"))
        await first.commit()
        await first.stop()
        await asyncio.to_thread(Confluent.send, broker.bootstrap, topic, every[20:])
        second = await joined(stack, broker, group, topic, assignor)
        records.extend(await until([second], lambda seen: len(seen) >= 20, "the next twenty"))

    Confluent.send(broker.bootstrap, topic, every[:20])
    run(story)

    assert sorted((n % 2, n // 2, b"%d" % n) for n in range(40)) == sorted(
        (record.partition, record.offset, record.value) for record in records
    )


def test_commits(broker, topic, group):
    """Are aiokafka's commits kept, those one asks for and those it makes when it stops?"""
    create_topic(broker.bootstrap, topic, partitions=3)
    places = [aiokafka.TopicPartition(topic, number) for number in range(3)]
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"x", partition=2)] * 3)

    async def story(stack) -> None:
        member = await joined(stack, broker, group, topic, enable_auto_commit=True, auto_commit_interval_ms=3_600_000)
        await until([member], lambda seen: len(seen) == 3, "three records")
        await member.stop()
        last = await joined(stack, broker, group, topic)
        await last.commit({places[0]: OffsetAndMetadata(7, "a note"), places[1]: 8})
        assert [7, 8, 3] == [await last.committed(place) for place in places]

    run(story)


def test_static_member(broker, topic, group):
    """Does aiokafka's static member come back to its partitions?"""
    create_topic(broker.bootstrap, topic, partitions=2)

    async def story(stack) -> None:
        one = await joined(stack, broker, group, topic, group_instance_id="one")
        two = await joined(stack, broker, group, topic, group_instance_id="two")
        await until_share([one, two], 2)
        before = two.assignment()
        await two.stop()
        again = await joined(stack, broker, group, topic, group_instance_id="two")
        await until_share([one, again], 2)
        assert before == again.assignment()

    run(story)


async def transactional(stack: AsyncExitStack, broker, transactional_id: str) -> aiokafka.AIOKafkaProducer:
    """A producer with a transactional id, started; it is forgiven to be fenced when it stops."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=transactional_id)
    await producer.start()
    stack.push_async_callback(producer.stop)
    return producer


def committed_values(broker, topic: str, count: int) -> list[bytes]:
    """What a reader of committed records gets first."""
    read = Confluent.read(broker.bootstrap, topic, count=count, **{"isolation.level": "read_committed"})
    return [seen.value for seen in read]


def test_transactions(broker, topic, group):
    """Do aiokafka's transactions commit and abort records and offsets together?"""
    create_topic(broker.bootstrap, topic)
    source = create_topic(broker.bootstrap, f"{topic}-in")
    place = aiokafka.TopicPartition(source, 0)

    async def story(stack) -> None:
        member = await joined(stack, broker, group, source)
        await until_share([member], 1)
        producer = await transactional(stack, broker, f"{group}-producer")
        for value, ends, offset in ((b"one", "commit", 3), (b"aborted", "abort", 3), (b"three", "commit", 5)):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, value, partition=0)
            await producer.send_offsets_to_transaction({place: len(value)}, group)
            await getattr(producer, f"{ends}_transaction")()
            while await member.committed(place) != offset:
                pass  # the markers are written after the answer

    run(story)

    assert [b"one", b"three"] == committed_values(broker, topic, 2)


def test_fencing(broker, topic, group):
    """Is the older of two aiokafka producers with one id shut out?"""
    create_topic(broker.bootstrap, topic)

    async def story(stack) -> None:
        old = await transactional(stack, broker, group)
        await old.begin_transaction()
        await old.send_and_wait(topic, b"old", partition=0)
        new = await transactional(stack, broker, group)
        await new.begin_transaction()
        await new.send_and_wait(topic, b"new", partition=0)
        await new.commit_transaction()
        with pytest.raises(aiokafka.errors.ProducerFenced):
            await old.commit_transaction()

    run(story)

    assert [b"new"] == committed_values(broker, topic, 1)
