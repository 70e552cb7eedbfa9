"""One node, assembled: settings, log dirs, metadata quorum, partitions, listeners, and what runs in the background.

A node is a broker, a controller, or both.
Start: lock the log dirs, bind, take part in the quorum; a broker then registers, catches up with the metadata, opens
(or recovers) every local log, is unfenced, and lets clients in.
Stop: hand over what others can lead, unbind, let requests under way finish, flush and close every log, leave the
clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace.broker.api import Api
from headrace.broker.cluster_view import ClusterView
from headrace.broker.compaction import Compaction
from headrace.broker.control import Control
from headrace.broker.controller import Controller
from headrace.broker.coordinators.assembly import group_coordinator, share_state_coordinator
from headrace.broker.coordinators.metadata_changes import tell_groups
from headrace.broker.coordinators.transactions import transaction_coordinator
from headrace.broker.dispatch import Dispatch, load_apis
from headrace.broker.faults import Faults
from headrace.broker.fetcher import COLD_FETCHES_MAX
from headrace.broker.flusher import Flusher
from headrace.broker.formatting import found_quorum, is_alone, require_format
from headrace.broker.forwarding import Forwarding
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.listeners import Endpoint, open_listeners, serve
from headrace.broker.membership import Membership
from headrace.broker.metadata_fetch import fetch_metadata
from headrace.broker.metadata_news import MetadataNews, TopicNames
from headrace.broker.metrics import Metrics
from headrace.broker.partitions import Partitions
from headrace.broker.peers import Peers
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.refusals import Refusals
from headrace.broker.replicas import Replicas
from headrace.broker.store import Store
from headrace.broker.throttles import Throttles
from headrace.coordination.quorum.quorum import Quorum
from headrace.coordination.quorum.settings import metadata_log_config, quorum_settings
from headrace.cores.fetch_sessions import FetchSessions
from headrace.cores.metadata import RESOURCE_BROKER, Metadata
from headrace.cores.raft.voters import Endpoint as VoterEndpoint
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.histogram import Histogram
from headrace.model.ids import usable_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from headrace.broker.share_service import ShareService
    from headrace.model.metadata_records import MetadataRecord
    from headrace.net.listener import Listener
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files
    from headrace.wire.fetch import FetchPartition

logger = logging.getLogger(__name__)

FLUSH_THREADS = 4
READER_THREADS = 4
CHECK_THREADS = 2
"""Batches that are taken apart at a time; each may need as much memory as max.decompressed.message.bytes."""

METADATA_FETCH = Api(key=1, low=4, high=18, handle=fetch_metadata, raw=True, controller=True)
"""Fetch as a controller's listener serves it: of the metadata only."""

COORDINATORS_AWAITED_S = 1.0
"""A start waits so long for the coordinators, so that clients of a small cluster need not ask twice."""


def wall_clock_ms() -> int:
    """The wall clock, in Kafka's unit."""
    return time.time_ns() // 1_000_000


async def _settled(work: asyncio.Future[Any]) -> None:
    await work


class Broker:
    """A running node; make it, `start` it, `stop` it."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files,
        clock: Callable[[], int] = wall_clock_ms,
        chance: random.Random | None = None,
    ) -> None:
        self.static_config = config
        self.config = config
        """The settings in force: the file's, with what was changed while running on top."""
        self.clock = clock
        self.node_id = config.node_id
        self._files = files
        self._chance = chance or random.SystemRandom()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: list[tuple[Callable[[Metadata], bool], asyncio.Future[None]]] = []
        """Those who wait for the metadata to say something."""
        self._topic_names = TopicNames()
        self.is_open = False
        """Whether the local logs are open, so that what is committed has to be acted on."""
        self.is_waiting = False
        """Whether a start waits for the cluster, so that nothing is lost if it is given up."""
        self.broken = asyncio.Event()
        """Set when this node should not go on: others do its work better than one that has lost its disks."""
        self.broken_because = ""
        self.metadata = Metadata()
        self._assemble_services()
        self._assemble_cluster()
        self._assemble_partitions(files)
        self._assemble_coordinators()
        self.metrics = Metrics(self)

    def _assemble_services(self) -> None:
        self.apis = load_apis()
        self.faults = Faults(self.apis)
        self.request_times = {key: Histogram() for key in self.apis}
        """How long each API took to answer, waiting included."""
        self.broker_apis = {key: api for key, api in self.apis.items() if api.on_brokers}
        self.controller_apis = {key: api for key, api in self.apis.items() if api.controller} | {1: METADATA_FETCH}
        self.dispatch = Dispatch(self, self.broker_apis, self.faults, Forwarding(self))
        self.controller_dispatch = Dispatch(self, self.controller_apis, self.faults)
        self.refusals = Refusals(self.clock)
        self.listeners: list[Listener] = []
        self.endpoints: dict[str, Endpoint] = {}

    def _assemble_cluster(self) -> None:
        incarnation_id = self.new_uuid()
        self.quorum: Quorum
        self._quorum: Quorum | None = None
        self.cluster = ClusterView(self)
        self.controller = Controller(self, incarnation_id=incarnation_id)
        self.control = Control(self)
        self.membership = Membership(self, incarnation_id=incarnation_id)
        self.producer_ids = ProducerIds(self)
        self.peers = Peers(
            self.metadata,
            self.apis,
            node_id=self.node_id,
            listener=lambda: self.config.inter_broker_listener,
            timeout_s=lambda: self.config["request.timeout.ms"] / 1000,
        )

    def _assemble_partitions(self, files: Files) -> None:
        self.flush_threads = ThreadPoolExecutor(FLUSH_THREADS, thread_name_prefix="flush")
        self.readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="reader")
        self.checkers = ThreadPoolExecutor(CHECK_THREADS, thread_name_prefix="check")
        self.flusher = Flusher(self.flush_threads, threads=FLUSH_THREADS)
        self.fetch_sessions: FetchSessions[FetchPartition] = FetchSessions(
            self.config["max.incremental.fetch.session.cache.slots"]
        )
        self.cold_fetches = asyncio.Semaphore(COLD_FETCHES_MAX)
        self.store = Store(self.config, files=files, clock=self.clock)
        self.partitions = Partitions(
            metadata=self.metadata,
            log_dirs=self.store.log_dirs,
            flusher=self.flusher,
            executor=self.readers,
            checkers=self.checkers,
            clock=self.clock,
            config=lambda: self.config,
        )
        self.partitions.on_all_offline = self._on_log_dirs_lost
        self.throttles = Throttles(self)
        self.replicas = Replicas(self)
        self.housekeeping = Housekeeping(self)
        self.compaction = Compaction(self)

    def _assemble_coordinators(self) -> None:
        self.groups = group_coordinator(self)
        self.transactions = transaction_coordinator(self)
        self.share_state = share_state_coordinator(self)
        self._coordinators = {kind.topic: kind for kind in (self.groups, self.transactions, self.share_state)}

    # --- life

    async def start(self) -> None:
        """Come up; when this returns, clients are answered."""
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.readers, self._open_store)
        self.cluster_id = self.store.cluster_id
        self.listeners, self.endpoints = await open_listeners(self.config, self._services(), self._on_refuse)
        await self._take_part()
        if "broker" in self.config.roles:
            await self._join()
        await self.metrics.start()
        logger.info(
            "broker_started node=%d cluster=%s roles=%s listeners=%s partitions=%d seconds=%.2f",
            self.node_id,
            self.cluster_id,
            ",".join(sorted(self.config.roles)),
            ",".join(f"{e.listener}://{e.host}:{e.port}" for e in self.endpoints.values()),
            sum(1 for _ in self.partitions),
            time.monotonic() - began,
        )

    def _open_store(self) -> None:
        require_format(self.config, self._files)
        self.store.open()

    def _services(self) -> dict[str, Dispatch]:
        names = self.config.controller_listener_names
        return {
            listener.name: self.controller_dispatch if listener.name in names else self.dispatch
            for listener in self.config.listeners
        }

    def _listeners_of(self, *, controllers: bool) -> list[Listener]:
        names = self.config.controller_listener_names
        return [one for one in self.listeners if (one.name in names) == controllers]

    async def _take_part(self) -> None:
        """Take part in the quorum, and as a controller answer for it."""
        loop = asyncio.get_running_loop()
        log_dir = self.store.log_dirs[0]
        assert log_dir.meta is not None, "the store has formatted it"
        names = self.config.controller_listener_names
        told = (one for one in self.endpoints.values() if one.listener in names)
        settings = quorum_settings(
            self.config,
            cluster_id=self.cluster_id,
            directory_id=log_dir.meta.directory_id,
            endpoints=tuple(VoterEndpoint(one.listener, one.host, one.port) for one in told),
        )
        log = self.store.metadata_log
        log.configure(metadata_log_config(self.config))
        await loop.run_in_executor(
            self.readers,
            lambda: found_quorum(self.config, settings, self._files, log.path, now_ms=self.clock()),
        )
        self.quorum = Quorum(
            log,
            self.metadata,
            log_dir=log_dir,
            settings=settings,
            executor=self.flush_threads,
            clock=self.clock,
            chance=self._chance,
        )
        self.quorum.on_leadership = self.controller.on_leadership
        self.quorum.on_commit = self._on_commit
        self.quorum.on_leader = self._on_leader
        self.quorum.on_fault = self._on_quorum_fault
        await self.quorum.start()
        self._quorum = self.quorum
        self._take_over_broker_configs()
        if "controller" in self.config.roles:
            await serve(self._listeners_of(controllers=True))
            self.membership.register_controller()

    async def _join(self) -> None:
        """Become a broker of the cluster, and let clients in."""
        self.is_waiting = True
        await self.membership.register(self._previous_epoch())
        await self.quorum.caught_up()
        self.is_waiting = False
        async with self.quorum.turn:
            # The metadata stands still while the logs are opened that it names.
            self._topic_names.learn(self.metadata)
            self._take_over_broker_configs()
            await asyncio.get_running_loop().run_in_executor(self.readers, self.replicas.open)
            await self.replicas.start()
            self.is_open = True
        await self.membership.serve()
        await self.until(self._is_unfenced)
        async with self.quorum.turn:
            """What we lead since we are in service has been taken over: nobody is sent to look for another leader."""
        await self._load_coordinators()
        await serve(self._listeners_of(controllers=False))
        self.housekeeping.start()

    def _previous_epoch(self) -> int:
        """The epoch the last process of this broker had, if it stopped cleanly in all its log dirs; else -1."""
        epochs = {log_dir.stopped_epoch for log_dir in self.store.log_dirs}
        return epochs.pop() if len(epochs) == 1 else -1

    def _is_unfenced(self, metadata: Metadata) -> bool:
        known = metadata.brokers.get(self.node_id)
        return known is not None and not known.fenced

    async def _load_coordinators(self) -> None:
        """Read the coordinators' logs, in the background if they are long: clients are told to wait meanwhile."""
        loading = asyncio.gather(*(kind.lead_all() for kind in self._coordinators.values()))
        self.spawn(_settled(loading))
        if len(self.metadata.brokers) == 1:
            # Where there are others, they must reach us before a log can be known to be committed.
            await asyncio.wait({loading}, timeout=COORDINATORS_AWAITED_S)

    async def stop(self) -> None:
        """Go down cleanly: everything acknowledged or not is flushed, and the next start need not recover."""
        if self._quorum is not None and len(self.metadata.brokers) > 1:
            # Others take over while we still answer; where there are none, nobody need hear that we lead no longer.
            await self.membership.leave()
        await self.metrics.stop()
        for listener in self._listeners_of(controllers=False):
            await listener.stop()
        self._stop_sharing()
        for coordinator in self._coordinators.values():
            coordinator.resign_all()
        self.replicas.resign()
        await self.replicas.moves.stop()
        await self.compaction.stop()
        await self.housekeeping.stop()
        await self.dispatch.drain()
        await self._leave_quorum()
        for task in tuple(self._tasks):
            task.cancel()
        await self.flusher.drained()
        for log_dir in self.store.log_dirs:
            log_dir.broker_epoch = self.broker_epoch
        await asyncio.get_running_loop().run_in_executor(self.readers, self.store.close)
        self._end_threads()
        logger.info("broker_stopped node=%d", self.node_id)

    async def _leave_quorum(self) -> None:
        self.membership.stop()
        if self._quorum is not None:
            await self._quorum.stop()
        self.controller.stop()
        for listener in self._listeners_of(controllers=True):
            await listener.stop()
        await self.controller_dispatch.drain()
        self.control.close()
        self.peers.close()

    async def abandon(self) -> None:
        """End as a crash would: nothing is flushed, nobody is told; the log dirs can be opened again."""
        self.is_open = False
        await self.metrics.stop()
        self.membership.stop()
        if self._quorum is not None:
            self._quorum.abandon()
        self.controller.stop()
        self.control.close()
        self.peers.close()
        for listener in self.listeners:
            await listener.stop()
        self._stop_sharing()
        for coordinator in self._coordinators.values():
            coordinator.resign_all()
        self.replicas.resign()
        await self.replicas.moves.stop()
        await self.housekeeping.stop()
        for task in tuple(self._tasks):
            task.cancel()
        self._end_threads()
        for log_dir in self.store.log_dirs:
            log_dir.abandon()

    def _end_threads(self) -> None:
        self.flush_threads.shutdown()
        self.readers.shutdown()
        self.checkers.shutdown()

    @cached_property
    def share(self) -> ShareService:
        """What share groups have here; made for the first that asks, as a start need not wait for it."""
        from headrace.broker.share_service import ShareService  # noqa: PLC0415

        return ShareService(self)

    def _stop_sharing(self) -> None:
        if "share" in vars(self):
            self.share.stop()

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
    def broker_epoch(self) -> int:
        """The epoch of this process's registration, -1 before it has one."""
        return self.membership.broker_epoch

    @property
    def log_dir_paths(self) -> set[str]:
        """The log dirs partitions can be in, whether they are well or not."""
        return set(map(os.path.abspath, self.config.log_dirs))

    @property
    def directory_ids(self) -> list[uuid.UUID]:
        """The ids of the log dirs partitions can be in."""
        paths = self.log_dir_paths
        return [d.meta.directory_id for d in self.store.log_dirs if d.meta and d.meta.directory_id and d.path in paths]

    @property
    def live_brokers(self) -> list[int]:
        """Ids of the brokers that serve."""
        return self.cluster.live_brokers

    def apis_for(self, listener_name: str) -> Mapping[int, Api]:
        """What is served on a listener."""
        return self.controller_apis if listener_name in self.config.controller_listener_names else self.broker_apis

    def endpoints_for(self, listener_name: str) -> list[tuple[int, str, int, str | None]]:
        """Every broker as a client of this listener reaches it: id, host, port, rack."""
        return [(one.node_id, one.host, one.port, one.rack) for one in self.cluster.brokers(listener_name)]

    def random_session_id(self) -> int:
        """A fresh fetch-session id."""
        return self._chance.randint(1, 2**31 - 1)

    def new_uuid(self) -> uuid.UUID:
        """A fresh random id that Kafka's tools can print and parse."""
        while True:
            value = uuid.UUID(bytes=self._chance.randbytes(16), version=4)
            if usable_uuid(value):
                return value

    async def until(self, holds: Callable[[Metadata], bool], timeout_s: float | None = None) -> None:
        """Wait until this broker's metadata says something; KafkaError(REQUEST_TIMED_OUT) if it does not in time."""
        if holds(self.metadata):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = (holds, done)
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(timeout_s):
                await done
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The metadata did not arrive in time.") from None
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    # --- metadata

    async def _on_commit(self, records: Sequence[MetadataRecord]) -> None:
        """Take over what was committed, which the metadata has already."""
        try:
            news = self._topic_names.news(records)
            if self.is_open:
                await self._take_over(news)
            elif news.configured_brokers:
                self._take_over_broker_configs()
        finally:
            for waiting in tuple(self._waiting):
                self._tell(*waiting)

    def _tell(self, holds: Callable[[Metadata], bool], done: asyncio.Future[None]) -> None:
        try:
            if not done.done() and holds(self.metadata):
                done.set_result(None)
        except Exception as mistake:  # noqa: BLE001 - it is that of whoever waits, and must not stop the metadata
            done.set_exception(mistake)

    async def _take_over(self, news: MetadataNews) -> None:
        if news.configured_brokers:
            self._take_over_broker_configs()
        for name in news.configured_topics:
            self.partitions.reconfigure(name)
            self.throttles.take_over(name)
        for name, _ in news.deleted:
            self.throttles.take_over(name)
        deleted = [topic_id for _, topic_id in news.deleted]
        if news.changed or deleted:
            await self.replicas.apply(news.changed, deleted)
        grown = {topic.name for topic_id in news.created if (topic := self.metadata.topics_by_id.get(topic_id))}
        tell_groups(self.groups, changed=grown, deleted=news.deleted)

    async def led(self, topic: str, indexes: Iterable[int]) -> None:
        """This broker leads some partitions in a new epoch: if they are a coordinator's, it coordinates."""
        if topic in self._coordinators:
            await self._coordinators[topic].lead(indexes)

    def resigned(self, topic: str, indexes: Iterable[int]) -> None:
        """This broker leads some partitions no longer."""
        if topic in self._coordinators:
            self._coordinators[topic].resign(indexes)

    def _take_over_broker_configs(self) -> None:
        try:
            self.config = self.static_config.with_dynamic(
                self.metadata.configs(RESOURCE_BROKER, str(self.node_id)), self.metadata.configs(RESOURCE_BROKER, "")
            )
        except KafkaError as error:
            # They were right when they were set; the file has changed since. A broker that runs on its file beats none.
            logger.error("dynamic_settings_ignored reason=%s", error)  # noqa: TRY400
            self.config = self.static_config
        self.throttles.take_over_rates()
        for topic in self.metadata.topics:
            self.partitions.reconfigure(topic)
            self.throttles.take_over(topic)

    def _on_leader(self) -> None:
        self.control.on_leader()
        self.membership.greet()

    def _on_quorum_fault(self, fault: KafkaError) -> None:
        self._break(str(fault))

    def _on_log_dirs_lost(self) -> None:
        paths = ", ".join(sorted(self.log_dir_paths))
        logger.critical("log_dirs_lost paths=%s", paths)
        self._break(f"All log dirs have failed: {paths}.")

    def _break(self, reason: str) -> None:
        if not is_alone(self.config):
            # One that is alone still serves what is there to read.
            self.broken_because = self.broken_because or reason
            self.broken.set()

    def _on_refuse(self, peer: str, reason: str) -> None:
        logger.info("connection_closed peer=%s reason=%s", peer, reason)
