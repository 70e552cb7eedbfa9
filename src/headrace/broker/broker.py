"""One broker, assembled: settings, log dirs, metadata, partitions, listeners, and what runs in the background.

Start: lock the log dirs, read the metadata log, open (or recover) every partition's log in parallel, bind.
Stop: unbind, let requests under way finish, flush and close every log, leave the clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headrace.broker.compaction import Compaction
from headrace.broker.coordinators.assembly import group_coordinator, share_state_coordinator
from headrace.broker.coordinators.metadata_changes import tell_groups
from headrace.broker.coordinators.transactions import transaction_coordinator
from headrace.broker.dispatch import Dispatch, load_apis
from headrace.broker.faults import Faults
from headrace.broker.fetcher import COLD_FETCHES_MAX
from headrace.broker.flusher import Flusher
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.listeners import Endpoint, open_listeners, serve
from headrace.broker.partitions import Partitions
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.share_service import ShareService
from headrace.broker.store import Store
from headrace.coordination.standalone import StandaloneMetadata
from headrace.cores.fetch_sessions import FetchSessions
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata
from headrace.model.errors import KafkaError
from headrace.model.ids import usable_uuid
from headrace.model.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from headrace.settings.fault import ConfigFault

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from headrace.broker.api import Api
    from headrace.cores.metadata import PartitionState, Topic
    from headrace.net.listener import Listener
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files
    from headrace.wire.fetch import FetchPartition

logger = logging.getLogger(__name__)

FLUSH_THREADS = 4
READER_THREADS = 4
CHECK_THREADS = 2
"""Batches that are taken apart at a time; each may need as much memory as max.decompressed.message.bytes."""


COORDINATORS_AWAITED_S = 1.0
"""A start waits so long for the coordinators, so that clients of a small cluster need not ask twice."""


def wall_clock_ms() -> int:
    """The wall clock, in Kafka's unit."""
    return time.time_ns() // 1_000_000


async def _settled(work: asyncio.Future[Any]) -> None:
    await work


def _refuse_several_nodes(config: BrokerConfig) -> None:
    """A node that expects others must not pretend: what it promises about replicas and quorum would be untrue."""
    others = [voter.node_id for voter in config.quorum_voters if voter.node_id != config.node_id]
    if config.roles == {"broker", "controller"} and not others:
        return
    raise ConfigFault(
        "This node is meant to work with other nodes, and clusters of several nodes are not served yet",
        "Set process.roles=broker,controller, and only this node in controller.quorum.voters.",
    )


class Broker:
    """A running broker; make it, `start` it, `stop` it."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files,
        clock: Callable[[], int] = wall_clock_ms,
        chance: random.Random | None = None,
    ) -> None:
        _refuse_several_nodes(config)
        self.static_config = config
        self.config = config
        """The settings in force: the file's, with what was changed while running on top."""
        self.clock = clock
        self.node_id = config.node_id
        self.metadata = Metadata()
        self.apis = load_apis()
        self.faults = Faults(self.apis)
        self.dispatch = Dispatch(self, self.apis, self.faults)
        self.controller_apis = {key: api for key, api in self.apis.items() if api.controller}
        self.controller_dispatch = Dispatch(self, self.controller_apis, self.faults)
        self.flush_threads = ThreadPoolExecutor(FLUSH_THREADS, thread_name_prefix="flush")
        self.readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="reader")
        self.checkers = ThreadPoolExecutor(CHECK_THREADS, thread_name_prefix="check")
        self.flusher = Flusher(self.flush_threads, threads=FLUSH_THREADS)
        self.fetch_sessions: FetchSessions[FetchPartition] = FetchSessions(
            config["max.incremental.fetch.session.cache.slots"]
        )
        self.cold_fetches = asyncio.Semaphore(COLD_FETCHES_MAX)
        self.store = Store(config, files=files, clock=clock)
        self.partitions = Partitions(
            metadata=self.metadata,
            log_dirs=self.store.log_dirs,
            flusher=self.flusher,
            executor=self.readers,
            checkers=self.checkers,
            clock=clock,
            config=lambda: self.config,
        )
        self.groups = group_coordinator(self)
        self.transactions = transaction_coordinator(self)
        self.share_state = share_state_coordinator(self)
        self.share = ShareService(self)
        self._coordinators = {kind.topic: kind for kind in (self.groups, self.transactions, self.share_state)}
        self.housekeeping = Housekeeping(self)
        self.compaction = Compaction(self)
        self.listeners: list[Listener] = []
        self.endpoints: dict[str, Endpoint] = {}
        self._chance = chance or random.SystemRandom()
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- life

    async def start(self) -> None:
        """Come up; when this returns, clients are answered."""
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        await loop.run_in_executor(self.readers, self.store.open)
        self.cluster_id = self.store.cluster_id
        self.controller = StandaloneMetadata(
            self.store.metadata_log,
            self.metadata,
            executor=self.flush_threads,
            clock=self.clock,
            on_commit=self._on_commit,
        )
        self.producer_ids = ProducerIds(self.controller, broker_id=self.node_id)
        await loop.run_in_executor(self.readers, self.controller.replay)
        self._take_over_broker_configs()
        await self._finalize_features()
        await loop.run_in_executor(self.readers, self.store.open_partitions, self.metadata, self.partitions)
        await self._load_coordinators()
        services = {
            listener.name: self.controller_dispatch
            if listener.name in self.config.controller_listener_names
            else self.dispatch
            for listener in self.config.listeners
        }
        self.listeners, self.endpoints = await open_listeners(self.config, services, self._on_refuse)
        await serve(self.listeners)
        self.housekeeping.start()
        logger.info(
            "broker_started node=%d cluster=%s listeners=%s partitions=%d seconds=%.2f",
            self.node_id,
            self.cluster_id,
            ",".join(f"{e.listener}://{e.host}:{e.port}" for e in self.endpoints.values()),
            sum(1 for _ in self.partitions),
            time.monotonic() - began,
        )

    async def _load_coordinators(self) -> None:
        """Read the coordinators' logs, in the background if they are long: clients are told to wait meanwhile."""
        loading = asyncio.gather(*(kind.lead_all() for kind in self._coordinators.values()))
        self.spawn(_settled(loading))
        await asyncio.wait({loading}, timeout=COORDINATORS_AWAITED_S)

    async def stop(self) -> None:
        """Go down cleanly: everything acknowledged or not is flushed, and the next start need not recover."""
        for listener in self.listeners:
            await listener.stop()
        self.share.stop()
        for coordinator in self._coordinators.values():
            coordinator.resign_all()
        await self.compaction.stop()
        await self.housekeeping.stop()
        await self.dispatch.drain()
        for task in tuple(self._tasks):
            task.cancel()
        await self.flusher.drained()
        await asyncio.get_running_loop().run_in_executor(self.readers, self.store.close)
        self.flush_threads.shutdown()
        self.readers.shutdown()
        self.checkers.shutdown()
        logger.info("broker_stopped node=%d", self.node_id)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something in the background that this broker owns."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what handlers ask

    @property
    def fetch_bytes_max(self) -> int:
        """The most one fetch returns."""
        limit: int = self.config["fetch.max.bytes"]
        return limit

    @property
    def live_brokers(self) -> list[int]:
        """Ids of the brokers a replica can be placed on."""
        return [self.node_id]

    def leads(self, topic: Topic, state: PartitionState) -> bool:
        """Whether the leader the metadata names serves the partition yet; its log may still be in the making."""
        return self.partitions.find((topic.topic_id, state.index)) is not None

    def apis_for(self, listener_name: str) -> Mapping[int, Api]:
        """What is served on a listener."""
        return self.controller_apis if listener_name in self.config.controller_listener_names else self.apis

    def endpoints_for(self, listener_name: str) -> list[tuple[int, str, int, str | None]]:
        """Every broker as a client of this listener reaches it: id, host, port, rack."""
        endpoint = self.endpoints.get(listener_name)
        if endpoint is None:
            endpoint = next(iter(self.endpoints.values()))
        return [(self.node_id, endpoint.host, endpoint.port, self.config["broker.rack"])]

    def random_session_id(self) -> int:
        """A fresh fetch-session id."""
        return self._chance.randint(1, 2**31 - 1)

    def new_uuid(self) -> uuid.UUID:
        """A fresh random id that Kafka's tools can print and parse."""
        while True:
            value = uuid.UUID(bytes=self._chance.randbytes(16), version=4)
            if usable_uuid(value):
                return value

    # --- metadata

    async def _on_commit(self, records: Sequence[MetadataRecord]) -> None:
        """Take over what was committed: new partitions, removed topics, changed settings."""
        created: dict[uuid.UUID, list[int]] = {}
        deleted: list[tuple[str, uuid.UUID]] = []
        for record in records:
            match record:
                case PartitionRecord():
                    created.setdefault(record.topic_id, []).append(record.partition_id)
                case RemoveTopicRecord():
                    deleted += await self._erase(record.topic_id)
                case ConfigRecord(resource_type=kind) if kind == RESOURCE_TOPIC:
                    self.partitions.reconfigure(record.resource_name)
                case ConfigRecord(resource_type=kind) if kind == RESOURCE_BROKER:
                    self._take_over_broker_configs()
                case _:
                    pass
        for topic_id, indexes in created.items():
            topic = self.metadata.topics_by_id.get(topic_id)
            missing = [index for index in indexes if self.partitions.find((topic_id, index)) is None]
            if topic is not None and missing:
                await self.partitions.create(topic, missing)
                if topic.name in self._coordinators:
                    await self._coordinators[topic.name].lead(missing)
        grown = {topic.name for topic_id in created if (topic := self.metadata.topics_by_id.get(topic_id))}
        tell_groups(self.groups, changed=grown, deleted=deleted)

    async def _erase(self, topic_id: uuid.UUID) -> list[tuple[str, uuid.UUID]]:
        """Stop serving a deleted topic at once; its bytes go a little later, as readers may be amid them."""
        gone = self.partitions.remove(topic_id)
        if gone and gone[0].topic in self._coordinators:
            self._coordinators[gone[0].topic].resign_all()
        deleted = await asyncio.get_running_loop().run_in_executor(self.readers, self.store.take_out, gone)
        for log, partition in zip(deleted, gone, strict=False):
            self.housekeeping.remove_later(log, partition.config.file_delete_delay_ms)
        return [(partition.topic, topic_id) for partition in gone[:1]]

    def _take_over_broker_configs(self) -> None:
        try:
            self.config = self.static_config.with_dynamic(
                self.metadata.configs(RESOURCE_BROKER, str(self.node_id)), self.metadata.configs(RESOURCE_BROKER, "")
            )
        except KafkaError as error:
            # They were right when they were set; the file has changed since. A broker that runs on its file beats none.
            logger.error("dynamic_settings_ignored reason=%s", error)  # noqa: TRY400
            self.config = self.static_config
        for topic in self.metadata.topics:
            self.partitions.reconfigure(topic)

    async def _finalize_features(self) -> None:
        """A first start finalizes the metadata version, so that clients and tools know what they talk to."""
        from headrace.broker.features import FINALIZED  # noqa: PLC0415
        from headrace.cores.controller import Outcome  # noqa: PLC0415

        records = [
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in FINALIZED.items()
            if self.metadata.features.get(name) != level
        ]
        if records:
            await self.controller.run(lambda _: Outcome(records, None))

    def _on_refuse(self, peer: str, reason: str) -> None:
        logger.info("connection_closed peer=%s reason=%s", peer, reason)
