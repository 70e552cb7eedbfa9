"""What all routes share: the settings and the ways to the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from headrace.client.async_admin import AsyncKafkaAdmin
from headrace.client.async_producer import AsyncKafkaProducer
from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.fetching import Fetcher
from headrace.client.option_table import ADMIN
from headrace.gateway.instances import Instances
from headrace.gateway.known_topics import KnownTopics
from headrace.gateway.metered_producer import MeteredProducer
from headrace.gateway.meters import Meters
from headrace.gateway.streams.registry import Streams
from headrace.gateway.topic_lookup import TopicLookup
from headrace.gateway.waiting_reads import WaitingReads

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from headrace.settings.gateway import GatewayConfig

_CLIENT_ID = "headrace-gateway"


class Services:
    """The gateway's inside; an asynchronous context manager.

    A cluster that is not there is no reason not to start: requests are answered with 503 until it is.
    """

    def __init__(self, config: GatewayConfig) -> None:
        self.config = config
        self.client: Mapping[str, Any] = {"client.id": _CLIENT_ID, **config.client}
        """The client's options, for those who make clients of their own."""
        self.meters = Meters()
        self.admin = AsyncKafkaAdmin(config=self.client)
        connection = gather(ADMIN, {}, config=self.client).connection()
        self.cluster = Cluster(connection)
        """For short questions; an answer waits for those before it on the same connection."""
        self._reading = Cluster(connection)
        self.fetcher = Fetcher(self._reading)
        """For reads that do not wait (max_wait_ms=0): whoever waits for records needs connections of its own."""
        self.waiting_reads = WaitingReads(connection, most=config["reads.waiting.max"])
        self.topic_lookup = TopicLookup(self.admin, self.cluster)
        self.instances = Instances(config, self.client)
        self.topics = KnownTopics(self.cluster)
        """Which partitions topics have, for those who produce."""
        self.produce_streams = 0
        """How many clients produce streams of records now."""
        self._cluster_id = ""
        self.streams = Streams(config, self.admin, self.cluster, self.fetcher)
        self._producer: AsyncKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._later: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def leave(self) -> None:
        """The gateway is about to stop: end what would go on by itself."""
        await self.streams.close()

    async def __aexit__(self, *_: object) -> None:
        await self.instances.close()
        await asyncio.gather(*self._later)
        await self.leave()
        if self._producer is not None:
            await self._producer.stop()
        await self.admin.close()
        await self.cluster.close()
        await self._reading.close()
        await self.waiting_reads.close()

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something for which no request waits; a stop does."""
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def cluster_id(self, expected: str = "") -> str:
        """The cluster's id; asked for again if it is not what somebody expects."""
        if not self._cluster_id or self._cluster_id != expected:
            self._cluster_id = (await self.admin.describe_cluster()).cluster_id
        return self._cluster_id

    async def producer(self) -> AsyncKafkaProducer:
        """The producer of keys and values that are bytes already; made when it is first needed."""
        if self._producer is not None:
            return self._producer
        async with self._starting:
            if self._producer is None:
                producer = MeteredProducer(self.meters, {**self._producer_limits(), **self.client})
                await producer.start()
                self._producer = producer
        return self._producer

    def _producer_limits(self) -> dict[str, int]:
        """What fits into a request may be sent, and is answered in a request's time."""
        return {
            "max.request.size": self.config["request.max.bytes"],
            "delivery.timeout.ms": self.config["request.timeout.ms"],
        }
