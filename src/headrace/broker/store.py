"""A broker's disk: its log dirs, the metadata log in the first of them, and every partition's log.

Everything here blocks and runs in a thread, except `log_dirs`, which is filled in by `open`.
A log dir that was never formatted is formatted on first use, which Kafka leaves to a command.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.producers import ProducerStates
from headrace.model.errors import HeadraceError, StorageFault
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.model.log_config import LogConfig
from headrace.storage.deletion import STRAY_DIRECTORY, DeletedLog, mark_directory
from headrace.storage.log_dir import LogDir
from headrace.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.broker.partition import Partition
    from headrace.broker.partitions import Partitions
    from headrace.cores.metadata import Metadata
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files
    from headrace.storage.log import Log

logger = logging.getLogger(__name__)

METADATA_LOG = f"{METADATA_TOPIC}-0"
METADATA_CONFIG = LogConfig(cleanup_delete=False, flush_on_acks_all=True, max_message_bytes=2**31 - 1)
METADATA_TOPIC_ID = UUID(int=1)
"""The id Kafka reserves for the metadata topic."""
_PROGRESS_STEPS = 10
_FLUSH_THREADS = 8


class WrongCluster(HeadraceError):
    """The log dirs belong to another node or cluster than the settings say."""


class Store:
    """The log dirs of one broker."""

    def __init__(self, config: BrokerConfig, *, files: Files, clock: Callable[[], int]) -> None:
        self._config = config
        self._files = files
        self._clock = clock
        self.log_dirs: list[LogDir] = []
        self.cluster_id = ""
        self.metadata_log: Log

    # --- opening

    def open(self) -> None:
        """Lock and read every log dir, format new ones, and open the metadata log."""
        paths = list(dict.fromkeys([self._config.metadata_log_dir, *self._config.log_dirs]))
        try:
            for path in paths:
                self.log_dirs.append(LogDir.open(self._files, os.path.abspath(path)))  # noqa: PTH100 - the port takes text
                for finding in self.log_dirs[-1].findings:
                    logger.error("damage_found log_dir=%s %s", path, finding)
            self._identify()
            self.metadata_log = self._open_metadata_log(self.log_dirs[0])
        except HeadraceError:
            for log_dir in self.log_dirs:
                log_dir.abandon()
            self.log_dirs.clear()
            raise

    def _identify(self) -> None:
        """Check that all dirs are this node's, and write down whose the new ones are."""
        known = {d.meta.cluster_id for d in self.log_dirs if d.meta is not None}
        if len(known) > 1:
            raise WrongCluster(
                f"The log dirs belong to different clusters: {', '.join(sorted(known))}. "
                "Give this node only log dirs of its own cluster."
            )
        self.cluster_id = known.pop() if known else encode_uuid(_fresh_id())
        for log_dir in self.log_dirs:
            meta = log_dir.meta
            if meta is None:
                log_dir.write_meta(
                    MetaProperties(cluster_id=self.cluster_id, node_id=self._config.node_id, directory_id=_fresh_id())
                )
                logger.info("log_dir_formatted path=%s cluster=%s", log_dir.path, self.cluster_id)
            elif meta.node_id != self._config.node_id:
                raise WrongCluster(
                    f"{log_dir.path} belongs to node {meta.node_id}, but node.id is {self._config.node_id}. "
                    "Set node.id to that number, or use another log dir."
                )

    def _open_metadata_log(self, log_dir: LogDir) -> Log:
        producers = ProducerStates()
        if METADATA_LOG not in log_dir.log_names():
            return log_dir.create_log(
                METADATA_LOG,
                topic_id=METADATA_TOPIC_ID,
                config=METADATA_CONFIG,
                producers=producers,
                now_ms=self._clock(),
            )
        report = log_dir.load(
            [METADATA_LOG],
            config_for=lambda _: METADATA_CONFIG,
            producers_for=lambda _: producers,
            now_ms=self._clock(),
        )
        for fault in report.failed.values():
            raise fault
        return report.logs[METADATA_LOG]

    def open_partitions(self, metadata: Metadata, partitions: Partitions) -> None:
        """Open every partition's log, recovering in parallel after an unclean stop, and have them served."""
        states: dict[str, ProducerStates] = {}

        def producers_for(name: str) -> ProducerStates:
            return states.setdefault(name, partitions.producer_states())

        configs: dict[str, LogConfig] = {}

        def config_for(name: str) -> LogConfig:
            topic = name.rpartition("-")[0]
            if topic not in configs:
                configs[topic] = partitions.log_config(topic)
            return configs[topic]

        for log_dir in self.log_dirs:
            names = self._wanted(log_dir, metadata)
            report = log_dir.load(
                names,
                config_for=config_for,
                producers_for=producers_for,
                now_ms=self._clock(),
                threads=self._config["num.recovery.threads.per.data.dir"],
                on_progress=_progress(log_dir),
            )
            for name, fault in report.failed.items():
                logger.error("partition_offline name=%s reason=%s", name, fault)
            for name, log in report.logs.items():
                topic, _, index = name.rpartition("-")
                for finding in log.findings:
                    logger.error("damage_found log=%s %s", name, finding)
                for cut in log.cuts:
                    logger.warning("log_cut log=%s %s", name, cut)
                partitions.adopt(
                    metadata.topics[topic], metadata.topics[topic].partitions[int(index)], log, states[name]
                )
        self._make_missing(metadata, partitions)
        self._make_safe()

    def _make_safe(self) -> None:
        """Flush what an unclean stop left in the page cache: it is readable from now on, and visible is safe."""
        unflushed = [
            log for log_dir in self.log_dirs for log in log_dir.logs.values() if log.recovery_point < log.log_end_offset
        ]
        if not unflushed:
            return
        with ThreadPoolExecutor(_FLUSH_THREADS, thread_name_prefix="recovery-flush") as threads:
            for log, fault in zip(unflushed, threads.map(_flush, unflushed), strict=True):
                if fault is not None:
                    logger.error("partition_offline name=%s reason=%s", log.name, fault)
        self.checkpoint()

    def _wanted(self, log_dir: LogDir, metadata: Metadata) -> list[str]:
        """The partitions of a dir that exist in the metadata; what a deletion left is removed, strays set aside."""
        for deleted in log_dir.deleted_logs():
            deleted.remove()
        wanted = []
        for name in log_dir.log_names():
            if name == METADATA_LOG:
                continue
            try:
                is_wanted = self._belongs(log_dir, name, metadata)
            except StorageFault as fault:
                logger.error("partition_offline name=%s reason=%s", name, fault)  # noqa: TRY400
                continue
            if is_wanted:
                wanted.append(name)
            else:
                kept = mark_directory(self._files, f"{log_dir.path}/{name}", STRAY_DIRECTORY)
                logger.warning("stray_partition name=%s kept_as=%s", name, kept)
        return wanted

    def _belongs(self, log_dir: LogDir, name: str, metadata: Metadata) -> bool:
        """Whether a directory is that of a partition there is; StorageFault if it says it is another topic's.

        A topic made again gets a fresh directory, so two ids for one name are damage, and nothing to throw away.
        """
        topic_name, _, index = name.rpartition("-")
        topic = metadata.topics.get(topic_name)
        if topic is None or int(index) >= len(topic.partitions):
            return False
        topic_id = log_dir.topic_id(name)
        if topic_id not in {None, topic.topic_id}:
            raise StorageFault(f"{log_dir.path}/{name} is of topic id {topic_id}, the metadata says {topic.topic_id}")
        return True

    def _make_missing(self, metadata: Metadata, partitions: Partitions) -> None:
        """Make logs of partitions that were committed just before a crash and have no directory yet."""
        for topic in metadata.topics.values():
            missing = [s.index for s in topic.partitions if partitions.find((topic.name, s.index)) is None]
            if missing and not any(
                f"{topic.name}-{index}" in d.log_names() for d in self.log_dirs for index in missing
            ):
                partitions.create_now(topic, missing)

    # --- while running

    def checkpoint(self) -> None:
        """Write down recovery points and log starts."""
        for log_dir in self.log_dirs:
            if log_dir.online:
                log_dir.write_checkpoints()

    def log_dir_of(self, log: Log) -> LogDir:
        """The dir that holds a log."""
        return next(d for d in self.log_dirs if d.logs.get(log.name) is log)

    def take_out(self, partitions: Iterable[Partition]) -> list[DeletedLog]:
        """Rename the directories of deleted partitions out of the way."""
        deleted = []
        for partition in partitions:
            try:
                deleted.append(self.log_dir_of(partition.log).delete_log(partition.log.name))
            except StorageFault as fault:
                logger.error("delete_failed log=%s reason=%s", partition.log.name, fault)  # noqa: TRY400
        return deleted

    def close(self) -> None:
        """Flush and close all logs, and mark the stop as clean."""
        for log_dir in self.log_dirs:
            try:
                for name, fault in log_dir.close(self._clock()).items():
                    logger.error("close_failed log=%s reason=%s", name, fault)
            except StorageFault as fault:
                logger.error("close_failed path=%s reason=%s", log_dir.path, fault)  # noqa: TRY400
        self.log_dirs.clear()


def _flush(log: Log) -> StorageFault | None:
    try:
        job = log.flush_job()
        if job is not None:
            job.run()
            log.flushed(job)
    except StorageFault as fault:
        return fault
    return None


def _fresh_id() -> UUID:
    while True:
        value = uuid4()
        if usable_uuid(value):
            return value


def _progress(log_dir: LogDir) -> Callable[[int, int, str], None]:
    """Say how far a long recovery is, in a few lines."""

    def said(done: int, total: int, name: str) -> None:
        if not log_dir.clean_shutdown and (done % max(1, total // _PROGRESS_STEPS) == 0 or done == total):
            logger.info("recovering path=%s done=%d total=%d last=%s", log_dir.path, done, total, name)

    return said
