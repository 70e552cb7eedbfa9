"""What the console's pages show, asked of a real broker: Headrace, and once Apache Kafka."""

import asyncio
import contextlib
import json
import time
import uuid

import pytest

from headrace.client.admin_values import NewTopic
from headrace.client.offset_targets import NothingCommitted
from headrace.client.records import TopicPartition
from headrace.console.data_cluster import load_cluster
from headrace.console.data_groups import Reset, apply_reset, load_group, load_groups, plan_reset
from headrace.console.data_topics import change_config, load_configs, load_topic, load_topics
from headrace.console.record_query import RecordQuery
from headrace.console.record_reader import RecordReader
from headrace.gateway.history import History
from headrace.gateway.services import Services
from headrace.gateway.streams.tokens import BadFilter
from headrace.model.errors import KafkaError
from headrace.settings.gateway import GatewayConfig
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer


class Shop:
    """A topic with two partitions, ten records in each, and a group that has read some."""

    def __init__(self, services) -> None:
        name = uuid.uuid4().hex[:8]
        self.services = services
        self.topic, self.group = f"orders-{name}", f"packers-{name}"
        self.history = History(services)

    async def fill(self) -> None:
        await self.services.admin.create_topics([NewTopic(self.topic, 2, 1)])
        producer = await self.services.producer()
        for number in range(10):
            for partition in (0, 1):
                value = json.dumps({"n": number, "p": partition}).encode()
                await producer.send_and_wait(self.topic, value, b"k", partition)
        places = {TopicPartition(self.topic, 0): 4, TopicPartition(self.topic, 1): 10}
        await self.services.admin.alter_group_offsets(self.group, places)

    async def read(self, **question):
        query = RecordQuery(topic=self.topic, **question)
        reader = RecordReader(self.services.admin, self.services.fetcher, query)
        await reader.open()
        return await reader.page()


@contextlib.asynccontextmanager
async def opened(bootstrap):
    """A shop on a cluster."""
    config = GatewayConfig({"bootstrap.servers": bootstrap, "history.interval.ms": "500"})
    async with Services(config) as services:
        shop = Shop(services)
        await shop.fill()
        try:
            yield shop
        finally:
            await shop.history.__aexit__()


def on(broker, work):
    """Do something in a shop of its own."""

    async def run():
        async with opened(broker.bootstrap) as shop:
            await work(shop)

    asyncio.run(run())


async def look_around(shop):
    """Everything that pages ask for."""
    view = await load_cluster(shop.services)
    assert view.health.is_well
    assert len(view.cluster.brokers) == 1

    topics = {topic.name: topic for topic in await load_topics(shop.services)}
    assert (topics[shop.topic].records, len(topics[shop.topic].partitions)) == (20, 2)
    assert topics[shop.topic].bytes > 0
    assert topics[shop.topic].is_well

    await shop.history.sample(time.time())
    await shop.history.sample(time.time())
    assert shop.history.rate(shop.topic) == 0
    lag = shop.history.lag(shop.group)
    assert (lag.records, 0 < lag.seconds < 300) == (6, True)

    group = await load_group(shop.services, shop.history, shop.group)
    assert [(row.partition, row.committed, row.end, row.lag) for row in group.offsets] == [
        (0, 4, 10, 6),
        (1, 10, 10, 0),
    ]
    assert 0 < group.seconds < 300
    assert group.offsets[1].seconds == 0
    rows = {row.listed.group_id: row for row in await load_groups(shop.services, shop.history)}
    assert (rows[shop.group].members, rows[shop.group].lag.records) == (0, 6)

    page = await shop.read(filter="value.n > 7")
    assert sorted((one.partition, one.offset) for one in page.records) == [(0, 8), (0, 9), (1, 8), (1, 9)]

    plan = await plan_reset(shop.services, shop.group, Reset(to="earliest"))
    assert plan.offsets == {(shop.topic, 0): 0, (shop.topic, 1): 0}
    await apply_reset(shop.services, shop.group, plan.offsets)
    moved = await load_group(shop.services, shop.history, shop.group)
    assert [row.committed for row in moved.offsets] == [0, 0]


def test_headrace(broker):
    """Do the numbers of all pages agree with what was written and read?"""
    on(broker, look_around)


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka(tmp_path):
    """Do they agree where the cluster is Apache Kafka?"""
    try:
        peer = KafkaPeer(tmp_path / "broker")
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    try:
        on(peer, look_around)
    finally:
        peer.remove()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"start": "last", "limit": 3, "partition": 1}, [(1, 7), (1, 8), (1, 9)]),
        ({"start": "beginning", "limit": 2, "partition": 0}, [(0, 0), (0, 1)]),
        ({"start": "offset", "offset": 8}, [(0, 8), (0, 9), (1, 8), (1, 9)]),
        ({"start": "offset", "offset": 99}, []),
        ({"start": "time", "time_ms": 0, "limit": 1, "partition": 0}, [(0, 0)]),
        ({"start": "time", "time_ms": 4_000_000_000_000}, []),
        ({"start": "last", "limit": 1, "filter": "value.n == 0 and partition == 0"}, [(0, 0)]),
        ({"start": "beginning", "filter": 'key != "k"'}, []),
    ],
)
def test_reading(broker, question, expected):
    """Does each way to ask for records give the records it names, and no others?"""

    async def work(shop):
        page = await shop.read(**question)
        assert sorted((one.partition, one.offset) for one in page.records) == expected

    on(broker, work)


def test_reading_on(broker):
    """Do pages one after the other give every record once, though partitions come in chunks?"""

    async def work(shop):
        reader = RecordReader(
            shop.services.admin,
            shop.services.fetcher,
            RecordQuery(topic=shop.topic, start="beginning", limit=7),
        )
        await reader.open()
        pages = [await reader.page() for _ in range(3)]
        seen = [(one.partition, one.offset) for page in pages for one in page.records]
        assert sorted(seen) == [(p, o) for p in (0, 1) for o in range(10)]
        assert [page.is_end for page in pages] == [False, False, True]

    on(broker, work)


def test_live_reading(broker):
    """Does a live reader give what is written after it began, once?"""

    async def work(shop):
        query = RecordQuery(topic=shop.topic, start="live", filter="value.n >= 100")
        reader = RecordReader(shop.services.admin, shop.services.fetcher, query)
        await reader.open()
        assert await reader.live(0) == []
        producer = await shop.services.producer()
        for number in (100, 101):
            await producer.send_and_wait(shop.topic, json.dumps({"n": number}).encode(), partition=0)
        seen = [json.loads(one.value)["n"] for one in await reader.live(500)]
        assert seen == [100, 101]
        assert await reader.live(0) == []

    on(broker, work)


def test_bad_questions(broker):
    """Is a filter, a partition or a topic that cannot be told with a sentence?"""

    async def work(shop):
        with pytest.raises(BadFilter, match="column"):
            await shop.read(filter="value.n >")
        with pytest.raises(KafkaError, match="no partition 7"):
            await shop.read(partition=7)
        with pytest.raises(KafkaError):
            await load_topic(shop.services, "nowhere")
        with pytest.raises(NothingCommitted):
            await plan_reset(shop.services, "new-group", Reset(to="shift", shift=1, topic=shop.topic))

    on(broker, work)


def test_settings(broker):
    """Is a setting changed and taken back?"""

    async def work(shop):
        async def value():
            entry = {one.name: one for one in await load_configs(shop.services, shop.topic)}["retention.ms"]
            return entry.value, entry.is_default

        before = await value()
        await change_config(shop.services, shop.topic, "retention.ms", "1000")
        assert await value() == ("1000", False)
        await change_config(shop.services, shop.topic, "retention.ms", None)
        assert await value() == before

    on(broker, work)


def test_reset_outside_of_the_log(broker):
    """Does a plan say where it could not do what was wanted?"""

    async def work(shop):
        plan = await plan_reset(shop.services, shop.group, Reset(to="offset", offset=50))
        assert set(plan.offsets.values()) == {10}
        assert any("no offset 50" in note for note in plan.notes)
        late = await plan_reset(shop.services, shop.group, Reset(to="time", time_ms=4_000_000_000_000))
        assert set(late.offsets.values()) == {10}
        assert len(late.notes) == 2

    on(broker, work)
