"""A broker's disk: its log dirs, the metadata log in the first of them, and every partition's log.

Everything here blocks and runs in a thread, except `log_dirs`, which is filled in by `open`.
A log dir that was never formatted is formatted on first use, which Kafka leaves to a command.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

from headrace.broker.formatting import first_records
from headrace.broker.partitions import assigned_directory
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.producers import ProducerStates
from headrace.model.errors import HeadraceError, StorageFault
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.model.log_config import LogConfig
from headrace.storage.deletion import STRAY_DIRECTORY, DeletedLog, mark_directory
from headrace.storage.directory_names import log_name
from headrace.storage.log_dir import LogDir
from headrace.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headrace.broker.partition import Partition
    from headrace.broker.partitions import Partitions
    from headrace.cores.metadata import Metadata, PartitionState, Topic
    from headrace.model.metadata_records import MetadataRecord
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files
    from headrace.storage.log import Log

logger = logging.getLogger(__name__)

METADATA_LOG = f"{METADATA_TOPIC}-0"
METADATA_CONFIG = LogConfig(
    cleanup_delete=False, flush_on_acks_all=True, max_message_bytes=2**31 - 1, segment_preallocate_bytes=0
)
METADATA_TOPIC_ID = UUID(int=1)
"""The id Kafka reserves for the metadata topic."""
_PROGRESS_STEPS = 10
_FLUSH_THREADS = 8


class WrongCluster(HeadraceError):
    """The log dirs belong to another node or cluster than the settings say."""


class Copy(NamedTuple):
    """A log of a partition, which may have another in another log dir."""

    log_dir: LogDir
    log: Log
    producers: ProducerStates

    @property
    def directory_id(self) -> UUID | None:
        """The id of its log dir."""
        return None if self.log_dir.meta is None else self.log_dir.meta.directory_id

    @property
    def end(self) -> tuple[int, int]:
        """By which leader epoch its last record is, and where it ends: of two copies the greater one has more."""
        log = self.log
        is_empty = log.log_end_offset == log.log_start_offset
        return -1 if is_empty else log.epoch_at(log.log_end_offset - 1), log.log_end_offset


class Store:
    """The log dirs of one broker."""

    def __init__(self, config: BrokerConfig, *, files: Files, clock: Callable[[], int]) -> None:
        self._config = config
        self._files = files
        self._clock = clock
        self.log_dirs: list[LogDir] = []
        self.cluster_id = ""
        self.metadata_log: Log
        self.offline: set[str] = set()
        """Partitions whose logs are here and could not be opened: they are not to be begun anew."""
        self.failed_dirs: list[str] = []
        """Paths of log dirs that could not be opened at all."""
        self.first_records: Sequence[MetadataRecord] = ()
        """What the metadata log begins with, if it is empty and the directory was formatted for that."""

    # --- opening

    def open(self) -> None:
        """Lock and read every log dir, format new ones, and open the metadata log."""
        paths = list(dict.fromkeys([self._config.metadata_log_dir, *self._config.log_dirs]))
        try:
            for path in paths:
                self._open_dir(os.path.abspath(path))  # noqa: PTH100 - the port takes text
            self._require_one()
            self._identify()
            self.metadata_log = self._open_metadata_log(self.log_dirs[0])
            if not self.metadata_log.log_end_offset:
                self.first_records = first_records(self._files, self.log_dirs[0].path)
        except HeadraceError:
            for log_dir in self.log_dirs:
                log_dir.abandon()
            self.log_dirs.clear()
            raise

    def _open_dir(self, path: str) -> None:
        """Open one log dir; a disk that does not answer is done without, unless it is the metadata's."""
        try:
            log_dir = LogDir.open(self._files, path)
        except StorageFault as fault:
            if not self.log_dirs or not isinstance(fault.__cause__, OSError):
                raise
            logger.error("log_dir_offline path=%s reason=%s", path, fault)  # noqa: TRY400
            self.failed_dirs.append(path)
            return
        self.log_dirs.append(log_dir)
        for finding in log_dir.findings:
            logger.error("damage_found log_dir=%s %s", path, finding)

    def _require_one(self) -> None:
        """Refuse to start a broker that has nowhere to keep partitions."""
        paths = list(map(os.path.abspath, self._config.log_dirs))
        if "broker" in self._config.roles and not any(log_dir.path in paths for log_dir in self.log_dirs):
            raise StorageFault(f"none of the log dirs can be used: {', '.join(paths)}")

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
        configs: dict[str, LogConfig] = {}

        def config_for(name: str) -> LogConfig:
            topic = name.rpartition("-")[0]
            if topic not in configs:
                configs[topic] = partitions.log_config(topic)
            return configs[topic]

        copies: dict[str, list[Copy]] = {}
        for log_dir in self.log_dirs:
            for copy in self._load(log_dir, metadata, partitions, config_for):
                copies.setdefault(copy.log.name, []).append(copy)
        for name, found in copies.items():
            if name in self.offline:
                # One of two logs of that name cannot be read, and it may be the right one.
                continue
            topic, index = _place_of(name)
            state = metadata.topics[topic].partitions[index]
            copy = found[0] if len(found) == 1 else self._whole_copy(metadata.topics[topic], state, found)
            partitions.adopt(metadata.topics[topic], state, copy.log, copy.producers)
        for log_dir in self.log_dirs:
            for directory in log_dir.future_names():
                if log_name(directory) not in log_dir.futures:
                    self._open_future(log_dir, directory, metadata, partitions)
        self._make_missing(metadata, partitions)
        self._make_safe()

    def _load(
        self, log_dir: LogDir, metadata: Metadata, partitions: Partitions, config_for: Callable[[str], LogConfig]
    ) -> list[Copy]:
        """Open the logs of one dir."""
        states: dict[str, ProducerStates] = {}

        def producers_for(name: str) -> ProducerStates:
            return states.setdefault(name, partitions.producer_states())

        report = log_dir.load(
            self._wanted(log_dir, metadata),
            config_for=config_for,
            producers_for=producers_for,
            now_ms=self._clock(),
            threads=self._config["num.recovery.threads.per.data.dir"],
            on_progress=_progress(log_dir),
        )
        for name, fault in report.failed.items():
            self._set_offline(name, fault)
        for name, log in report.logs.items():
            for finding in log.findings:
                logger.error("damage_found log=%s %s", name, finding)
            for cut in log.cuts:
                logger.warning("log_cut log=%s %s", name, cut)
        return [Copy(log_dir, log, states[name]) for name, log in report.logs.items()]

    # --- what a stop left of moves between log dirs

    def _whole_copy(self, topic: Topic, state: PartitionState, found: list[Copy]) -> Copy:
        """Which of several logs of one name goes on: the one that has more, as only one of them was written to last.

        The other is set aside; if that is where the replica was to move, the move begins again.
        """
        assigned = assigned_directory(state, self._config.node_id)
        best = max(found, key=lambda copy: (*copy.end, copy.directory_id == assigned))
        for copy in found:
            if copy is best:
                continue
            name = copy.log.name
            kept = copy.log_dir.set_aside(name)
            logger.warning("partition_in_two_dirs name=%s used=%s kept_as=%s", name, best.log.path, kept)
            if copy.directory_id == assigned:
                self._begin_copy(copy.log_dir, name, topic, best.log.config)
        return best

    def _open_future(self, log_dir: LogDir, directory: str, metadata: Metadata, partitions: Partitions) -> None:
        """Open a copy that was not whole when the last process stopped, so that it can go on; useless ones go."""
        name = log_name(directory)
        topic, index = _place_of(name)
        partition = partitions.find((topic, index))
        try:
            is_wanted = self._belongs(log_dir, name, metadata, directory=directory)
            if is_wanted and partition is None and (name in self.offline or self._may_lack(metadata, name)):
                self._set_offline(name, StorageFault(f"of its log only a part is left, in {log_dir.path}/{directory}"))
            elif not is_wanted or partition is None or self._is_superfluous(log_dir, name):
                _remove(log_dir, directory)
            else:
                log_dir.load_future(
                    directory,
                    config=partition.config,
                    producers=partitions.producer_states(),
                    now_ms=self._clock(),
                )
        except StorageFault as fault:
            logger.warning("copy_begun_again log=%s reason=%s", name, fault)
            _remove(log_dir, directory)
            if partition is not None:
                self._begin_copy(log_dir, name, metadata.topics[topic], partition.config)

    def _is_superfluous(self, log_dir: LogDir, name: str) -> bool:
        """Whether a copy is of a log that is in this dir already, or is being copied to another."""
        return name in log_dir.logs or any(name in other.futures for other in self.log_dirs)

    def _may_lack(self, metadata: Metadata, name: str) -> bool:
        """Whether nobody else may have the records of a partition whose log is not here."""
        topic, index = _place_of(name)
        return bool(self.failed_dirs) or len(metadata.topics[topic].partitions[index].replicas) == 1

    def _begin_copy(self, log_dir: LogDir, name: str, topic: Topic, config: LogConfig) -> None:
        log_dir.create_future(
            name, topic_id=topic.topic_id, config=config, producers=ProducerStates(), now_ms=self._clock()
        )

    def _make_safe(self) -> None:
        """Flush what an unclean stop left in the page cache: it is readable from now on, and visible is safe."""
        unflushed = [
            log
            for log_dir in self.log_dirs
            for log in log_dir.logs.values()
            if log.recovery_point < log.log_end_offset and log is not self.metadata_log
        ]
        if not unflushed:
            return
        with ThreadPoolExecutor(_FLUSH_THREADS, thread_name_prefix="recovery-flush") as threads:
            for log, fault in zip(unflushed, threads.map(_flush, unflushed), strict=True):
                if fault is not None:
                    logger.error("partition_offline name=%s reason=%s", log.name, fault)
        self.checkpoint()

    def _set_offline(self, name: str, fault: StorageFault) -> None:
        logger.error("partition_offline name=%s reason=%s", name, fault)
        self.offline.add(name)

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
                self._set_offline(name, fault)
                continue
            if is_wanted:
                wanted.append(name)
            else:
                kept = mark_directory(self._files, f"{log_dir.path}/{name}", STRAY_DIRECTORY)
                logger.warning("stray_partition name=%s kept_as=%s", name, kept)
        return wanted

    def _belongs(self, log_dir: LogDir, name: str, metadata: Metadata, *, directory: str = "") -> bool:
        """Whether a directory is that of a partition this broker holds; StorageFault if it says it is another topic's.

        A topic that was deleted and made again while we were away is copied from the others. Where there are none, two
        ids for one name are damage, and nothing to set aside.
        """
        topic_name, _, index = name.rpartition("-")
        topic = metadata.topics.get(topic_name)
        if topic is None or int(index) >= len(topic.partitions):
            return False
        replicas = topic.partitions[int(index)].replicas
        if self._config.node_id not in replicas:
            return False
        topic_id = log_dir.topic_id(directory or name, expected=topic.topic_id)
        if topic_id is None:
            log_dir.name_topic(directory or name, topic.topic_id)
        elif topic_id != topic.topic_id:
            if len(replicas) > 1:
                return False
            raise StorageFault(f"{log_dir.path}/{name} is of topic id {topic_id}, the metadata says {topic.topic_id}")
        return True

    def _make_missing(self, metadata: Metadata, partitions: Partitions) -> None:
        """Make logs of partitions that were committed just before a crash and have no directory yet."""
        missing: dict[UUID, list[int]] = {}
        for topic_id, index in metadata.index.replicas.get(self._config.node_id, ()):
            name = f"{metadata.topics_by_id[topic_id].name}-{index}"
            if partitions.find((topic_id, index)) is not None or name in self.offline:
                continue
            if self.failed_dirs and partitions.is_assigned_elsewhere(metadata.topics_by_id[topic_id], index):
                self._set_offline(name, StorageFault("its log dir could not be opened"))
                continue
            missing.setdefault(topic_id, []).append(index)
        for topic_id, indexes in missing.items():
            partitions.create_now(metadata.topics_by_id[topic_id], sorted(indexes))

    # --- while running

    def checkpoint(self) -> None:
        """Write down recovery points and log starts where that can be; StorageFault if somewhere it cannot."""
        self._in_each(LogDir.write_checkpoints)

    def note_high_watermarks(self) -> None:
        """Write down how far everything is known to be committed, in the same way."""
        self._in_each(LogDir.write_high_watermarks)

    def _in_each(self, write: Callable[[LogDir], None]) -> None:
        """Do it in every log dir that is online: one that fails must not keep the others from it."""
        fault: StorageFault | None = None
        for log_dir in self.log_dirs:
            if log_dir.online:
                try:
                    write(log_dir)
                except StorageFault as problem:
                    fault = fault or problem
        if fault is not None:
            raise fault

    def offline_directories(self) -> list[UUID]:
        """The ids of the log dirs that failed, for the controller."""
        return [
            log_dir.meta.directory_id
            for log_dir in self.log_dirs
            if not log_dir.online and log_dir.meta is not None and log_dir.meta.directory_id is not None
        ]

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


def _place_of(name: str) -> tuple[str, int]:
    """The topic and the number of a partition, from the name of its log."""
    topic, _, index = name.rpartition("-")
    return topic, int(index)


def _remove(log_dir: LogDir, directory: str) -> None:
    DeletedLog(log_dir.files, mark_directory(log_dir.files, f"{log_dir.path}/{directory}")).remove()


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
