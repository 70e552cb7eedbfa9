"""Snapshots of the metadata: files that stand for the beginning of the log (KIP-630), as Kafka names and fills them.

    00000000000000000042-0000000003.checkpoint    all records below offset 42, the last of them of epoch 3

A snapshot is a row of batches like the log's, from offset 0: a control batch with the header (and the voters, where the
log names them), the records, a control batch with the footer. It is written under another name (`.part`), flushed and
renamed, so that one with its right name is whole. Everything here blocks and is for a thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.coordination.quorum.control_batches import voter_set, voters_record
from headrace.coordination.quorum.metadata_log import decode_records
from headrace.cores.raft.log_mirror import EMPTY, OffsetAndEpoch
from headrace.cores.raft.voters import VoterSet
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import MetadataRecord
from headrace.records.batch import CorruptBatch, check_batch, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.storage.files import write_all
from headrace.wire.control_records import ControlRecord, build_control_batch, read_control_batch
from headrace.wire.messages.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.wire.metadata_records import encode_metadata_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headrace.records.compression import Bytes
    from headrace.storage.files import File, Files

CHECKPOINT = ".checkpoint"
PARTIAL = ".part"
DELETED = ".deleted"
BATCH_RECORDS = 1000
"""Records in one batch of a snapshot."""
_HEAD_BYTES = 64 * 1024
"""Enough for the first batch: a header and the voters."""
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint(\.part|\.deleted)?\Z")
_OTHER_PARTIAL = re.compile(r"[0-9]{20}-[0-9]{10}-.*\.checkpoint\.part\Z")
"""As Kafka calls a snapshot that is being written."""


class Snapshot(Struct, frozen=True):
    """What a snapshot holds."""

    timestamp_ms: int
    """When the last record in it was appended to the log."""
    voters: VoterSet | None
    records: Sequence[MetadataRecord]


class Head(Struct, frozen=True):
    """What can be told of a snapshot without reading all of it."""

    size: int
    timestamp_ms: int
    voters: VoterSet | None


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """The name of a snapshot's file."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{CHECKPOINT}"


def snapshot_batches(
    records: Iterable[MetadataRecord], *, epoch: int, timestamp_ms: int, voters: VoterSet | None, now_ms: int
) -> Iterator[bytearray]:
    """The batches of a snapshot, one after the other."""
    head: list[ControlRecord] = [SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)]
    if voters is not None:
        head += [KRaftVersionRecord(k_raft_version=1), voters_record(voters)]
    yield build_control_batch(head, timestamp_ms=now_ms, leader_epoch=epoch)
    offset = len(head)
    waiting: list[NewRecord] = []
    for record in records:
        waiting.append(NewRecord(now_ms, None, encode_metadata_record(record)))
        if len(waiting) == BATCH_RECORDS:
            yield build_batch(waiting, base_offset=offset, leader_epoch=epoch)
            offset += len(waiting)
            waiting = []
    if waiting:
        yield build_batch(waiting, base_offset=offset, leader_epoch=epoch)
        offset += len(waiting)
    yield build_control_batch([SnapshotFooterRecord()], timestamp_ms=now_ms, base_offset=offset, leader_epoch=epoch)


def read_snapshot(data: Bytes) -> Snapshot:
    """Take a snapshot apart; CorruptBatch if it is not whole, StorageFault if a record in it is not known here."""
    timestamp_ms, voters, is_whole = -1, None, False
    records: list[MetadataRecord] = []
    view, end = memoryview(data), 0
    for position, _ in split_batches(view):
        header = check_batch(view, position)
        end = position + header.size
        batch = view[position:end]
        if not header.is_control:
            records += decode_records(batch)
            continue
        for record in read_control_batch(batch):
            match record:
                case SnapshotHeaderRecord():
                    timestamp_ms = record.last_contained_log_timestamp
                case VotersRecord():
                    voters = voter_set(record)
                case SnapshotFooterRecord():
                    is_whole = True
                case _:
                    pass
    if not is_whole or end != len(view):
        raise CorruptBatch("the snapshot has no end")
    return Snapshot(timestamp_ms, voters, records)


def write_batches(files: Files, directory: str, name: str, batches: Iterable[bytearray]) -> int:
    """Write a file of batches, which has its name only once it is whole; durable on return. Gives its size."""
    path = f"{directory}/{name}"
    try:
        file = files.open(path + PARTIAL, create=True)
        size = 0
        for batch in batches:
            write_all(file, batch, size)
            size += len(batch)
        _keep(files, directory, file, path)
    except OSError as problem:
        files.unlink(path + PARTIAL)
        raise StorageFault(f"{path}: {problem}") from problem
    return size


def _keep(files: Files, directory: str, file: File, path: str) -> None:
    """Give a complete file its name."""
    file.fdatasync()
    files.rename(path + PARTIAL, path)
    files.fsync_dir(directory)


class SnapshotFiles:
    """The snapshots in the directory of the metadata log."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._partial: tuple[OffsetAndEpoch, File] | None = None

    def _path(self, snapshot_id: OffsetAndEpoch) -> str:
        return f"{self._directory}/{snapshot_name(snapshot_id)}"

    def ids(self) -> list[OffsetAndEpoch]:
        """The complete snapshots, the oldest first."""
        matches = (_NAME.match(name) for name in self._names())
        found = [OffsetAndEpoch(int(match[1]), int(match[2])) for match in matches if match and match[3] is None]
        return sorted(found, key=lambda snapshot_id: snapshot_id.rank)

    def clear(self) -> None:
        """At start, remove what an interruption left."""
        for name in self._names():
            if ((match := _NAME.match(name)) and match[3] is not None) or _OTHER_PARTIAL.match(name):
                self._unlink(f"{self._directory}/{name}")

    def _names(self) -> list[str]:
        try:
            return self._files.listdir(self._directory)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise StorageFault(f"{self._directory}: {problem}") from problem

    def write(
        self,
        snapshot_id: OffsetAndEpoch,
        records: Iterable[MetadataRecord],
        *,
        timestamp_ms: int,
        voters: VoterSet | None,
        now_ms: int,
    ) -> int:
        """Write a snapshot of committed records; durable on return. Gives its size."""
        batches = snapshot_batches(
            records, epoch=snapshot_id.epoch, timestamp_ms=timestamp_ms, voters=voters, now_ms=now_ms
        )
        return write_batches(self._files, self._directory, snapshot_name(snapshot_id), batches)

    def read(self, snapshot_id: OffsetAndEpoch) -> Snapshot:
        """What a snapshot holds; StorageFault if it is damaged."""
        path = self._path(snapshot_id)
        try:
            return read_snapshot(self._files.read(path))
        except (OSError, CorruptBatch) as problem:
            raise StorageFault(f"{path}: {problem}") from problem

    def piece(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """The size of a snapshot and some bytes of it; None if it is gone."""
        path = self._path(snapshot_id)
        try:
            file = self._files.open(path)
            return file.size(), file.pread(max_bytes, position)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem

    def add_piece(self, snapshot_id: OffsetAndEpoch, position: int, data: Bytes) -> None:
        """Keep a piece of a snapshot that comes from the leader; position 0 starts it anew."""
        path = self._path(snapshot_id) + PARTIAL
        try:
            if self._partial is None or self._partial[0] != snapshot_id or position == 0:
                self._partial = (snapshot_id, self._files.open(path, create=True))
            write_all(self._partial[1], data, position)
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem

    def complete(self, snapshot_id: OffsetAndEpoch) -> Snapshot:
        """All pieces are there: check what they make, keep it under its name, and take it apart; durable on return."""
        path = self._path(snapshot_id)
        assert self._partial is not None, "pieces came first"
        assert self._partial[0] == snapshot_id
        file = self._partial[1]
        self._partial = None
        try:
            snapshot = read_snapshot(file.pread(file.size(), 0))
            _keep(self._files, self._directory, file, path)
        except (OSError, CorruptBatch) as problem:
            self._files.unlink(path + PARTIAL)
            raise StorageFault(f"{path}: {problem}") from problem
        return snapshot

    def head(self, snapshot_id: OffsetAndEpoch) -> Head:
        """What the beginning of a snapshot tells; nothing of one that is gone or damaged."""
        size, data = self.piece(snapshot_id, 0, _HEAD_BYTES) or (0, b"")
        timestamp_ms, voters = 0, None
        try:
            for record in read_control_batch(data[: check_batch(data).size]):
                if isinstance(record, SnapshotHeaderRecord):
                    timestamp_ms = record.last_contained_log_timestamp
                elif isinstance(record, VotersRecord):
                    voters = voter_set(record)
        except CorruptBatch:
            return Head(size, 0, None)
        return Head(size, timestamp_ms, voters)

    def remove_before(self, snapshot_id: OffsetAndEpoch) -> None:
        """Remove the snapshots that are older than one; that of formatting too, since the log has begun."""
        for one in self.ids():
            if one.rank < snapshot_id.rank:
                self.remove(one)

    def remove(self, snapshot_id: OffsetAndEpoch) -> None:
        """Remove one."""
        self._unlink(self._path(snapshot_id))

    def _unlink(self, path: str) -> None:
        try:
            self._files.unlink(path)
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem

    def write_bootstrap(self, voters: VoterSet, *, now_ms: int) -> None:
        """Format a directory with the voters of a new quorum (`kafka-storage format --standalone`)."""
        self.write(EMPTY, (), timestamp_ms=0, voters=voters, now_ms=now_ms)
