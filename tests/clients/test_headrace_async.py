"""Headrace's asynchronous clients."""

import asyncio
import contextlib

import pytest

from clients.libraries import DEADLINE_S, create_topic
from headrace import (
    AsyncKafkaAdmin,
    AsyncKafkaConsumer,
    AsyncKafkaProducer,
    Closed,
    ConsumerRebalanceListener,
    ErrorCode,
    KafkaError,
    NewTopic,
    NoBroker,
    TimedOut,
    TopicPartition,
)
from headrace.testing.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]


def run(work):
    """Run a test's coroutine, within bounds."""
    return asyncio.run(asyncio.wait_for(work, DEADLINE_S))


def test_producer(broker, topic):
    """Does an awaited record come back with its place, headers and all, and do many share their wake-ups?"""
    create_topic(broker.bootstrap, topic, partitions=2, retention_ms="-1")

    async def work():
        async with AsyncKafkaProducer(bootstrap_servers=broker.bootstrap, value_serializer="json") as producer:
            one = await producer.send_and_wait(topic, {"n": 0}, b"k", 1, 1234, [("h", b"1")])
            many = [await producer.send(topic, {"n": n}, partition=0) for n in range(500)]
            stored = await asyncio.gather(*many)
            partitions = await producer.partitions_for(topic)
        async with AsyncKafkaConsumer(bootstrap_servers=broker.bootstrap, value_deserializer="json") as consumer:
            await consumer.assign([TopicPartition(topic, 1)])
            await consumer.seek_to_beginning()
            seen = await consumer.getone()
        return one, stored, partitions, seen

    one, stored, partitions, seen = run(work())
    assert (topic, 1, 0, 1234, 0) == one
    assert list(range(500)) == [each.offset for each in stored]
    assert {0, 1} == partitions
    assert ({"n": 0}, b"k", [("h", b"1")]) == (seen.value, seen.key, seen.headers)


def test_consumer_in_a_group(broker, topic, group):
    """Does iteration give every record, and the next member go on after what was taken?"""
    create_topic(broker.bootstrap, topic)

    async def read(count):
        options = {"bootstrap_servers": broker.bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        async with AsyncKafkaConsumer(topic, **options) as consumer:
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if len(seen) == count:
                    break
            return seen

    async def work():
        async with AsyncKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(10):
                await producer.send(topic, b"x")
        return await read(4), await read(6)

    assert ([0, 1, 2, 3], [4, 5, 6, 7, 8, 9]) == run(work())


def test_cancelled_wait_loses_nothing(broker, topic):
    """Is a record that comes after its waiter was cancelled there for the next one?"""
    create_topic(broker.bootstrap, topic)

    async def work():
        async with (
            AsyncKafkaProducer(bootstrap_servers=broker.bootstrap) as producer,
            AsyncKafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            for number in range(10):
                waiting = asyncio.ensure_future(consumer.getone())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait({waiting})
                await producer.send_and_wait(topic, b"%d" % number)
            return [(await consumer.getone()).value for _ in range(10)]

    assert [b"%d" % number for number in range(10)] == run(work())


def test_many_at_once(broker, topic):
    """Does getmany give what is there by partition, and nothing when nothing comes?"""
    create_topic(broker.bootstrap, topic, partitions=2)

    async def work():
        async with AsyncKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                await producer.send(topic, b"x", partition=number % 2)
        async with AsyncKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            found = []
            while sum(map(len, found)) < 10:
                polled = await consumer.getmany(timeout_ms=1000, max_records=4)
                found += polled.values()
            return found, await consumer.getmany(timeout_ms=50), await consumer.position(TopicPartition(topic, 1))

    found, nothing, position = run(work())
    assert max(map(len, found)) <= 4
    assert ({}, 5) == (nothing, position)


def test_commit_while_another_task_reads(broker, topic, group):
    """Can one task commit, seek and ask while another waits for records?"""
    create_topic(broker.bootstrap, topic)
    place = TopicPartition(topic, 0)

    async def work():
        async with (
            AsyncKafkaProducer(bootstrap_servers=broker.bootstrap) as producer,
            AsyncKafkaConsumer(
                topic,
                bootstrap_servers=broker.bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=50,
            ) as consumer,
        ):
            for _ in range(3):
                await producer.send_and_wait(topic, b"x")
            for _ in range(3):
                await consumer.getone()
            waiting = asyncio.ensure_future(consumer.getone())
            await consumer.commit()
            committed = await consumer.committed(place)
            ends = await consumer.end_offsets([place])
            await consumer.seek(place, 1)
            return committed, ends, (await waiting).offset, consumer.assignment()

    assert (3, {place: 3}, 1, {place}) == run(work())


def test_listener_is_awaited(broker, topic, group):
    """Are a listener's coroutines awaited on the loop, with the consumer at their disposal?"""
    create_topic(broker.bootstrap, topic)

    async def work():
        heard = []
        consumer = AsyncKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)

        class FromTwo(ConsumerRebalanceListener):
            async def on_partitions_assigned(self, assigned):
                for place in assigned:
                    heard.append(place)
                    await consumer.seek(place, 2)

        async with AsyncKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(4):
                await producer.send_and_wait(topic, b"x")
        async with consumer:
            await consumer.subscribe([topic], listener=FromTwo())
            return heard, (await consumer.getone()).offset

    assert ([TopicPartition(topic, 0)], 2) == run(work())


def test_transactions(broker, topic, group):
    """Do transactions commit and abort, with the offsets of a group?"""
    create_topic(broker.bootstrap, topic)
    place = TopicPartition(topic, 0)

    async def failing(producer):
        async with producer.transaction():
            await producer.send_and_wait(topic, b"aborted")
            raise ZeroDivisionError

    async def work():
        reading = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
        async with (
            AsyncKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=group) as producer,
            AsyncKafkaConsumer(topic, isolation_level="read_committed", group_id=group, **reading) as consumer,
        ):
            with pytest.raises(ZeroDivisionError):
                await failing(producer)
            async with producer.transaction():
                await producer.send(topic, b"committed")
                await producer.send_offsets_to_transaction({place: 1}, consumer)
            return (await consumer.getone()).value, await consumer.committed(place)

    assert (b"committed", 1) == run(work())


def test_admin(broker, topic):
    """Does the asynchronous admin client work, several questions at a time?"""

    async def work():
        async with AsyncKafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
            await admin.create_topics([NewTopic(topic, 3)])
            return await asyncio.gather(admin.list_topics(), admin.describe_topics([topic]))

    names, (described,) = run(work())
    assert topic in names
    assert 3 == len(described.partitions)


@pytest.mark.parametrize("kind", [AsyncKafkaProducer, AsyncKafkaConsumer, AsyncKafkaAdmin])
def test_no_broker(kind):
    """Is a broker that is not there named within the bound?"""

    async def work():
        async with kind(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=300):
            pass

    with pytest.raises(NoBroker, match=r"127\.0\.0\.1:1"):
        run(work())


def test_faults(broker, topic):
    """Do futures fail with a reason, and clients that are not started say so?"""
    create_topic(broker.bootstrap, topic)

    async def work():
        producer = AsyncKafkaProducer(bootstrap_servers=broker.bootstrap)
        with pytest.raises(Closed, match="start"):
            await producer.send(topic, b"x")
        async with producer:
            with pytest.raises(KafkaError) as caught:
                await producer.send_and_wait(topic, bytes(2_000_000))
        with pytest.raises(Closed):
            await producer.send(topic, b"x")
        with pytest.raises(Closed):
            await AsyncKafkaConsumer().getone()
        return caught.value.code

    assert ErrorCode.MESSAGE_TOO_LARGE == run(work())


def test_broker_goes_away(topic):
    """Does a record sent to a broker that went away fail in time?"""

    async def work(bootstrap, stop):
        async with AsyncKafkaProducer(bootstrap_servers=bootstrap, delivery_timeout_ms=1000) as producer:
            acknowledged = None
            while acknowledged is None:  # a busy machine may need longer than that for the first
                with contextlib.suppress(TimedOut):
                    acknowledged = await producer.send_and_wait(topic, b"x")
            await asyncio.get_running_loop().run_in_executor(None, stop)
            with pytest.raises(TimedOut, match="delivery_timeout_ms"):
                await producer.send_and_wait(topic, b"y")

    with Cluster() as cluster:
        run(work(cluster.bootstrap, cluster.stop))
