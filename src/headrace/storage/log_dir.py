"""One log dir: a directory of partition directories, with the files that say how it was left.

Opening it takes the lock, notes whether the last stop was a clean one and removes that mark at once: a crash from here
on is an unclean stop. Closing flushes every log, writes the checkpoints and sets the mark again, in this order.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.storage.checkpoint_file import replace_file
from headrace.storage.corruption import CorruptLog, Finding
from headrace.storage.deletion import DELETE_DIRECTORY, STRAY_DIRECTORY, DeletedLog, mark_directory
from headrace.storage.directory_names import future_name, is_deleted, is_future, is_log, log_name
from headrace.storage.epoch_checkpoint import read_epochs
from headrace.storage.files import Files, Lock, Space, passes
from headrace.storage.log import Log
from headrace.storage.meta_properties import MetaProperties, read_meta, read_topic_id, write_meta, write_topic_id
from headrace.storage.offset_checkpoint import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    forget_offset,
    read_offsets,
    write_offsets,
)
from headrace.storage.producer_journal import ProducerJournal

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_Result = TypeVar("_Result")


class LoadReport(Struct, frozen=True, kw_only=True):
    """What came of loading a log dir's partitions."""

    logs: dict[str, Log]
    failed: dict[str, StorageFault]
    """Partitions that cannot be served, and why; nothing of theirs was changed beyond what recovery is allowed."""


class LogDir:
    """An opened and locked log dir, and the logs in it."""

    __slots__ = (
        "_checkpointing",
        "_high_watermarks",
        "_is_closed",
        "_lock",
        "_log_starts",
        "_noted",
        "_recovery_points",
        "_shrinking",
        "broker_epoch",
        "clean_shutdown",
        "fault",
        "files",
        "findings",
        "futures",
        "logs",
        "meta",
        "online",
        "path",
        "stopped_epoch",
    )

    def __init__(self, files: Files, path: str, lock: Lock) -> None:
        self.files = files
        self.path = path
        self._lock = lock
        self.logs: dict[str, Log] = {}
        """The open logs by name ("topic-0")."""
        self.futures: dict[str, Log] = {}
        """Logs that are being copied here from other dirs, by the same names (KIP-113)."""
        self.findings: list[Finding] = []
        """What was wrong with the log dir's own files and could be done without."""
        self.clean_shutdown = False
        """Whether the last stop was a clean one."""
        self.online = True
        """Cleared by the owner once the disk failed here: nothing is acknowledged from this dir again."""
        self.fault: str | None = None
        """Why the owner should do so, if the dir's own files say it."""
        self.meta: MetaProperties | None = None
        self.broker_epoch = -1
        """Written down at a clean stop, for the next start."""
        self.stopped_epoch = -1
        """What the last clean stop wrote down; -1 if the last stop was none."""
        self._recovery_points: dict[str, int] = {}
        self._log_starts: dict[str, int] = {}
        self._high_watermarks: dict[str, int] = {}
        self._noted: set[str] = set()
        """The logs that the checkpoint files on the disk may speak of."""
        self._shrinking = threading.Lock()
        """Held while a log is truncated: it must not be closed meanwhile."""
        self._is_closed = False
        self._checkpointing = threading.Lock()
        """A checkpoint is written by one thread at a time, so that an older one never replaces a newer one."""

    @classmethod
    def open(cls, files: Files, path: str) -> "LogDir":
        """Open a log dir, making it if there is none; StorageFault if another process has it or it cannot be read."""
        try:
            _make(files, path)
            lock = files.lock(f"{path}/{LOCK_FILE}")
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem
        if lock is None:
            raise StorageFault(f"{path} is in use by another process")
        log_dir = cls(files, path, lock)
        try:
            log_dir._read()
        except OSError as problem:
            lock.release()
            raise StorageFault(f"{path}: {problem}") from problem
        except CorruptLog:
            lock.release()
            raise
        return log_dir

    def _read(self) -> None:
        self.meta = read_meta(self.files, self.path)
        self._recovery_points = self._read_checkpoint(RECOVERY_POINTS)
        self._log_starts = self._read_checkpoint(LOG_STARTS)
        self._high_watermarks = self._read_checkpoint(HIGH_WATERMARKS)
        self._noted = self._recovery_points.keys() | self._log_starts.keys()
        self.clean_shutdown = self.files.stat(f"{self.path}/{CLEAN_SHUTDOWN}") is not None
        if self.clean_shutdown:
            self.stopped_epoch = _stopped_epoch(self.files.read(f"{self.path}/{CLEAN_SHUTDOWN}"))
            self.files.unlink(f"{self.path}/{CLEAN_SHUTDOWN}")
            self.files.fsync_dir(self.path)

    def _read_checkpoint(self, name: str) -> dict[str, int]:
        """Without a checkpoint recovery looks at every batch, which is slow but loses nothing."""
        path = f"{self.path}/{name}"
        try:
            return read_offsets(self.files, path)
        except CorruptLog as fault:
            self.findings.append(Finding(path, 0, -1, str(fault)))
            return {}

    def write_meta(self, meta: MetaProperties) -> None:
        """Format the log dir: say whose it is."""
        try:
            write_meta(self.files, self.path, meta)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        self.meta = meta

    def log_names(self) -> list[str]:
        """The partitions that have a directory here, in order."""
        return sorted(filter(is_log, self._names()))

    def deleted_logs(self) -> list[DeletedLog]:
        """Directories of deleted partitions that a stop kept from being removed."""
        return [DeletedLog(self.files, f"{self.path}/{name}") for name in filter(is_deleted, self._names())]

    def future_names(self) -> list[str]:
        """The directories of logs that were being copied here when the last process stopped, in order."""
        return sorted(filter(is_future, self._names()))

    def _names(self) -> list[str]:
        try:
            return self.files.listdir(self.path)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def topic_id(self, name: str, *, expected: UUID | None = None) -> UUID | None:
        """The topic a partition's directory says it belongs to; None if a power cut kept it from saying so."""
        path = f"{self.path}/{name}"
        try:
            return read_topic_id(self.files, path, expected=expected)
        except CorruptLog:
            if expected is None or read_epochs(self.files, path) != []:
                raise
            # The first flush of records writes down their epoch before it is over: nothing was ever promised here, and
            # what the disk has in place of the name was left by a power cut.
            return None
        except OSError as problem:
            raise StorageFault(f"{self.path}/{name}: {problem}") from problem

    def name_topic(self, name: str, topic_id: UUID) -> None:
        """Write down whose a partition's directory is that a power cut left without a word about it."""
        try:
            write_topic_id(self.files, f"{self.path}/{name}", topic_id)
        except OSError as problem:
            raise StorageFault(f"{self.path}/{name}: {problem}") from problem

    def load(
        self,
        names: Sequence[str],
        *,
        config_for: Callable[[str], LogConfig],
        producers_for: Callable[[str], ProducerJournal],
        now_ms: int,
        threads: int = 1,
        on_progress: Callable[[int, int, str], None] = lambda done, total, name: None,
    ) -> LoadReport:
        """Open partitions that exist, several at a time after an unclean stop; progress is (done, total, name)."""

        def open_log(name: str) -> Log | StorageFault:
            try:
                return self._open_log(name, config_for(name), producers_for(name), now_ms)
            except StorageFault as fault:
                return fault

        report = LoadReport(logs={}, failed={})
        # A clean start is all small system calls: threads would only fight over the interpreter.
        results = _each(names, open_log, 1 if self.clean_shutdown else threads)
        for done, (name, result) in enumerate(results, start=1):
            if isinstance(result, StorageFault):
                report.failed[name] = result
            else:
                report.logs[name] = result
            on_progress(done, len(names), name)
        self.logs.update(report.logs)
        return report

    def _open_log(self, directory: str, config: LogConfig, producers: ProducerJournal, now_ms: int) -> Log:
        name = log_name(directory)
        log = Log.open(
            self.files,
            f"{self.path}/{directory}",
            config=config,
            now_ms=now_ms,
            clean_shutdown=self.clean_shutdown,
            recovery_point=self._recovery_points.get(name, 0),
            log_start_offset=self._log_starts.get(name, 0),
            producers=producers,
        )
        log.name = name
        return log

    def create_log(
        self, name: str, *, topic_id: UUID, config: LogConfig, producers: ProducerJournal, now_ms: int
    ) -> Log:
        """Make a partition's directory and open its empty log; durable with the log's first flush."""
        log = self.logs[name] = self._create(name, name, topic_id, config, producers, now_ms)
        return log

    def _create(
        self, directory: str, name: str, topic_id: UUID, config: LogConfig, producers: ProducerJournal, now_ms: int
    ) -> Log:
        assert is_log(name), name
        self._recovery_points.pop(name, None)
        self._log_starts.pop(name, None)
        self._high_watermarks.pop(name, None)
        if name in self._noted:
            # The checkpoints still speak of an earlier partition of this name: after a crash they would be believed,
            # and a log that begins before the old one's start would be dropped.
            self.write_checkpoints()
        self._forget_cleaning(name)
        self._clear(f"{self.path}/{directory}")
        log = self._open_log(directory, config, producers, now_ms)
        try:
            write_topic_id(self.files, log.path, topic_id, sync=False)
        except OSError as problem:
            raise StorageFault(f"{log.path}: {problem}") from problem
        return log

    def _clear(self, path: str) -> None:
        """Remove what an earlier partition of the same name left: one that could not be read, or was not made whole."""
        try:
            if self.files.stat(path) is not None:
                DeletedLog(self.files, mark_directory(self.files, path)).remove()
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem

    def delete_log(self, name: str) -> DeletedLog:
        """Take a partition out; its directory is renamed at once and to be removed later."""
        return self._delete(self.logs.pop(name), name)

    def set_aside(self, name: str) -> str:
        """Take a log out and keep it under another name, which is the answer."""
        return self._delete(self.logs.pop(name), name, STRAY_DIRECTORY).path

    def _delete(self, log: Log, name: str, ending: str = DELETE_DIRECTORY) -> DeletedLog:
        self._recovery_points.pop(name, None)
        self._log_starts.pop(name, None)
        self._high_watermarks.pop(name, None)
        deleted = log.delete(ending)
        self._forget_cleaning(name)
        return deleted

    # Logs on their way here from another dir

    def create_future(
        self, name: str, *, topic_id: UUID, config: LogConfig, producers: ProducerJournal, now_ms: int
    ) -> Log:
        """Make an empty log that a partition of another dir is to be copied to; blocking, and there to stay."""
        log = self._create(future_name(name), name, topic_id, config, producers, now_ms)
        try:
            self.files.fsync_dir(self.path)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        self.futures[name] = log
        return log

    def load_future(self, directory: str, *, config: LogConfig, producers: ProducerJournal, now_ms: int) -> Log:
        """Open a log that was being copied when the last process stopped; blocking."""
        log = self.futures[log_name(directory)] = self._open_log(directory, config, producers, now_ms)
        return log

    def name_future(self, name: str, *, producers: ProducerJournal, now_ms: int) -> Log:
        """Give a copy the name of a whole log, and open it anew under that; blocking.

        Until the partition goes on here there are two logs of that name, of which the longer is the right one.
        """
        log = self.futures[name]
        path = f"{self.path}/{name}"
        log.close(now_ms)
        self.write_checkpoints()
        self._clear(path)
        try:
            self.files.rename(log.path, path)
            self.files.fsync_dir(self.path)
        except OSError as problem:
            raise StorageFault(f"{log.path}: {problem}") from problem
        named = self.futures[name] = Log.open(
            self.files,
            path,
            config=log.config,
            now_ms=now_ms,
            clean_shutdown=True,
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
            producers=producers,
        )
        named.high_watermark = max(named.log_start_offset, log.high_watermark)
        return named

    def adopt_future(self, name: str) -> None:
        """A copy has become the partition's log."""
        self.logs[name] = self.futures.pop(name)

    def discard_future(self, name: str) -> DeletedLog:
        """Give a copy up; its directory is renamed at once and to be removed later."""
        return self._delete(self.futures.pop(name), name)

    def _forget_cleaning(self, name: str, *, above: int = -1) -> None:
        """Take a log out of the cleaner's checkpoint: what comes there now is dirty."""
        try:
            forget_offset(self.files, f"{self.path}/{CLEANER_OFFSETS}", name, above=above)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def write_checkpoints(self) -> None:
        """Write down recovery points and log starts; blocking, durable on return, any thread."""
        with self._checkpointing:
            logs = [*self.logs.values(), *self.futures.values()]
            noted = {log.name for log in logs} | self._recovery_points.keys() | self._log_starts.keys()
            self._recovery_points.update((log.name, log.recovery_point) for log in logs)
            self._log_starts.update((log.name, log.log_start_offset) for log in logs)
            try:
                # Copies, as another thread may be making or deleting a log.
                write_offsets(self.files, f"{self.path}/{RECOVERY_POINTS}", dict(self._recovery_points))
                starts = {name: offset for name, offset in dict(self._log_starts).items() if offset > 0}
                write_offsets(self.files, f"{self.path}/{LOG_STARTS}", starts)
                self._noted = noted
            except OSError as problem:
                raise self._failed(f"{self.path}: cannot write checkpoints: {problem}", problem) from problem

    def high_watermark(self, name: str) -> int:
        """The high watermark of a partition as it was last written down; 0 if it never was."""
        return self._high_watermarks.get(name, 0)

    def write_high_watermarks(self) -> None:
        """Write down how far every log is known to be committed, if that has changed; blocking, any thread."""
        with self._checkpointing:
            noted = {log.name: log.high_watermark for log in list(self.logs.values())}
            if noted == self._high_watermarks:
                return
            try:
                write_offsets(self.files, f"{self.path}/{HIGH_WATERMARKS}", noted)
            except OSError as problem:
                raise self._failed(f"{self.path}: cannot write high watermarks: {problem}", problem) from problem
            self._high_watermarks = noted

    def _failed(self, reason: str, problem: OSError) -> StorageFault:
        """A checkpoint found no room, and will be tried again; or the disk has failed."""
        if not passes(problem):
            self.fault = self.fault or reason
        return StorageFault(reason)

    def truncate(self, log: Log, offset: int) -> None:
        """Truncate a log, its lowered recovery point first: recovery must not miss what is about to go; blocking."""
        with self._shrinking:
            self._refuse_if_closed(log)
            log.lower_recovery_point(offset)
            self.write_checkpoints()
            self._forget_cleaning(log.name, above=offset)
            log.truncate_to(offset)

    def start_over(self, log: Log, offset: int) -> None:
        """Empty a log and let it begin elsewhere; the checkpoints say first that none of it need be there; blocking."""
        with self._shrinking:
            self._refuse_if_closed(log)
            log.lower_recovery_point(log.log_start_offset)
            self.write_checkpoints()
            self._forget_cleaning(log.name)
            log.truncate_fully(offset)
            self.write_checkpoints()

    def _refuse_if_closed(self, log: Log) -> None:
        if self._is_closed:
            raise StorageFault(f"{log.path} is closed")

    def space(self) -> Space:
        """Room on the volume."""
        try:
            return self.files.space(self.path)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def close(self, now_ms: int, *, threads: int = 4) -> dict[str, StorageFault]:
        """Flush and close all logs and mark the stop as clean if all went well; what did not, by name. Blocking."""
        with self._shrinking:
            self._is_closed = True

        logs = self.logs | self.futures

        def close_log(name: str) -> StorageFault | None:
            try:
                logs[name].close(now_ms)
            except StorageFault as fault:
                # A partition may move away in the last moment: of its log there is nothing left to close.
                return None if logs[name].deleted else fault
            return None

        failed = {name: fault for name, fault in _each(list(logs), close_log, threads) if fault is not None}
        try:
            self.write_checkpoints()
            self.write_high_watermarks()
            if not failed and self._all_recovered():
                text = json.dumps({"version": 0, "brokerEpoch": self.broker_epoch})
                replace_file(self.files, f"{self.path}/{CLEAN_SHUTDOWN}", text.encode())
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        finally:
            self._lock.release()
        return failed

    def _all_recovered(self) -> bool:
        """Whether no partition here is as an unclean stop left it: one that was never opened must be recovered yet."""
        found = {*self.log_names(), *map(log_name, self.future_names())}
        return self.clean_shutdown or found <= self.logs.keys() | self.futures.keys()

    def abandon(self) -> None:
        """Let go of the lock and leave everything as it is, as a crash would."""
        self._lock.release()


def _stopped_epoch(text: bytes) -> int:
    """The broker's epoch in a clean-shutdown marker; -1 in those of old, which are empty, and in damaged ones."""
    try:
        found = json.loads(text)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    return found if isinstance(found, int) else -1


def _make(files: Files, path: str) -> None:
    """Make a directory, and its name durable all the way up."""
    missing = []
    while path and files.stat(path) is None:
        missing.append(path)
        path = path.rpartition("/")[0]
    if missing:
        files.mkdir(missing[0])
    for made in missing:
        files.fsync_dir(made.rpartition("/")[0] or ("/" if made.startswith("/") else "."))


def _each(names: Sequence[str], work: Callable[[str], _Result], threads: int) -> Iterator[tuple[str, _Result]]:
    """Each name with what work made of it, as it gets done."""
    if threads <= 1 or len(names) <= 1:
        yield from ((name, work(name)) for name in names)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="log-dir") as pool:
        waiting = {pool.submit(work, name): name for name in names}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
