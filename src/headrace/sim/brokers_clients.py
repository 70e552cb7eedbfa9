"""Clients of a simulated cluster: one that writes idempotently, one that reads along, both over the wire."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headrace.model.errors import ErrorCode
from headrace.net.link import Link, LinkBroken
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.sim.brokers_machine import CLIENT_PORT, EPOCH_MS, host_of
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from headrace.sim.brokers import BrokersWorld

PRODUCE, FETCH, METADATA, CREATE_TOPICS, INIT_PRODUCER_ID = 0, 1, 3, 19, 22
VERSIONS = {PRODUCE: 12, FETCH: 12, METADATA: 12, CREATE_TOPICS: 7, INIT_PRODUCER_ID: 4}
"""Of each API the newest that calls topics by their names."""
BROKEN_PROMISES = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
}
"""What a broker answers only if something that was promised is gone."""
_PATIENCE_S = 4.0
_PAUSE_S = 0.1


class Client:
    """One program that talks to the cluster."""

    def __init__(self, world: BrokersWorld, name: str) -> None:
        self.world = world
        self.name = name
        self._links = {
            node: Link(host_of(node), CLIENT_PORT, client_id=name, connect_timeout_s=2.0) for node in world.machines
        }
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = defaultdict(lambda: -1)
        """The newest epoch of a leader that was heard of: who tells of an older one is behind (KIP-320)."""

    async def ask(self, node: int, api_key: int, message: Any) -> Any:
        """Ask a broker; LinkBroken if it does not answer."""
        return await self._links[node].ask(api_key, VERSIONS[api_key], message, timeout_s=_PATIENCE_S)

    async def ask_any(self, api_key: int, message: Any) -> Any:
        """Ask one broker after the other until one answers."""
        while True:
            node = self.world.loop.chance.choice(list(self.world.machines))
            try:
                return await self.ask(node, api_key, message)
            except LinkBroken:
                await asyncio.sleep(_PAUSE_S)

    async def ask_leader(self, topic: str, index: int, api_key: int, message: Any) -> Any:
        """Ask whoever leads a partition, as far as is known; None if there was no answer."""
        leader = self._leaders.get((topic, index))
        if leader is None:
            await self._find_leader(topic, index)
            return None
        try:
            return await self.ask(leader, api_key, message)
        except LinkBroken:
            self._leaders.pop((topic, index), None)
            return None

    async def _find_leader(self, topic: str, index: int) -> None:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        answer = await self.ask_any(METADATA, asked)
        for one in answer.topics[0].partitions:
            key = (topic, one.partition_index)
            if one.leader_id > 0 and one.leader_epoch >= self._epochs[key]:
                self._leaders[key], self._epochs[key] = one.leader_id, one.leader_epoch
        if (topic, index) not in self._leaders:
            await asyncio.sleep(_PAUSE_S)

    async def put_off(self, topic: str, index: int, code: int) -> None:
        """A broker said no: look for the leader again, unless it said what it never may."""
        if ErrorCode(code) in BROKEN_PROMISES:
            self.world.checker.violated("no promise is broken", f"{topic}-{index} answers {ErrorCode(code).name}")
        self._leaders.pop((topic, index), None)
        await asyncio.sleep(_PAUSE_S)


class Writer(Client):
    """Writes numbered records to each partition, one batch at a time, each until it is acknowledged."""

    def __init__(self, world: BrokersWorld) -> None:
        super().__init__(world, "writer")
        self.is_enough = False
        """Whether the batches under way are the last."""
        self.acked: dict[tuple[str, int], list[tuple[int, bytes]]] = defaultdict(list)
        """Offset and value of what was acknowledged."""

    async def create_topics(self, topics: dict[str, int]) -> None:
        """Create topics with three replicas, however long it takes."""
        wanted = tuple(
            CreatableTopic(name=name, num_partitions=count, replication_factor=3) for name, count in topics.items()
        )
        good = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
        while True:
            answer = await self.ask_any(CREATE_TOPICS, CreateTopicsRequest(topics=wanted, timeout_ms=3000))
            if all(ErrorCode(one.error_code) in good for one in answer.topics):
                return
            await asyncio.sleep(_PAUSE_S)

    async def write(self, topic: str, index: int) -> None:
        """Write to one partition until it is enough."""
        producer_id = await self._producer_id()
        chance, number = self.world.loop.chance, 0
        while not self.is_enough:
            values = [b"%s-%d:%d" % (topic.encode(), index, number + one) for one in range(chance.choice((1, 1, 2, 5)))]
            batch = build_batch(
                [NewRecord(timestamp=EPOCH_MS, value=value) for value in values],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=number,
            )
            offset = await self._written(topic, index, bytes(batch))
            self.world.say(f"{topic}-{index} acknowledges {len(values)} at {offset}")
            self.acked[topic, index] += [(offset + place, value) for place, value in enumerate(values)]
            number += len(values)
            await asyncio.sleep(chance.random() * self.world.pace_s)

    async def _producer_id(self) -> int:
        while True:
            answer = await self.ask_any(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))
            if answer.error_code == 0:
                found: int = answer.producer_id
                return found
            await asyncio.sleep(_PAUSE_S)

    async def _written(self, topic: str, index: int, batch: bytes) -> int:
        """The offset at which a batch was acknowledged, at last."""
        data = (PartitionProduceData(index=index, records=batch),)
        request = ProduceRequest(
            acks=-1, timeout_ms=2000, topic_data=(TopicProduceData(name=topic, partition_data=data),)
        )
        while True:
            answer = await self.ask_leader(topic, index, PRODUCE, request)
            if answer is None:
                continue
            (result,) = answer.responses[0].partition_responses
            if result.error_code == 0:
                offset: int = result.base_offset
                return offset
            await self.put_off(topic, index, result.error_code)


class Reader(Client):
    """Reads along, and remembers what it has seen."""

    def __init__(self, world: BrokersWorld, name: str = "reader") -> None:
        super().__init__(world, name)
        self.seen: dict[tuple[str, int], dict[int, bytes]] = defaultdict(dict)

    async def read(self, topic: str, index: int, until: int | None = None) -> None:
        """Read a partition from its beginning, for ever or to an offset."""
        position = 0
        while until is None or position < until:
            wanted = FetchPartition(
                partition=index,
                current_leader_epoch=self._epochs[topic, index],
                fetch_offset=position,
                partition_max_bytes=1 << 20,
            )
            request = FetchRequest(
                max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic=topic, partitions=(wanted,)),)
            )
            answer = await self.ask_leader(topic, index, FETCH, request)
            if answer is None:
                continue
            (result,) = answer.responses[0].partitions
            if result.error_code:
                await self.put_off(topic, index, result.error_code)
                continue
            position = self._take(topic, index, position, memoryview(result.records or b""))

    def _take(self, topic: str, index: int, position: int, rest: memoryview) -> int:
        seen = self.seen[topic, index]
        while rest:
            header = read_header(rest)
            for record in walk(rest):
                if record.offset >= position:
                    seen[record.offset] = bytes(record.value or b"")
                    position = record.offset + 1
            rest = rest[header.size :]
        return position
