"""The metadata log of one replica: decisions as batches, checked when read, flushed in a thread.

Appending and finding are the event loop's business, as with every log; what waits for the disk is a coroutine.
A flush that is under way is waited for before the log is cut or its beginning is dropped: it holds on to segments.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from headrace.coordination.quorum.control_batches import control_batch, voters_in
from headrace.cores.raft.voters import VoterSet
from headrace.model.errors import MalformedRequest, StorageFault
from headrace.model.metadata_records import MetadataRecord
from headrace.records.batch import BatchHeader, CorruptBatch, check_batch, read_header, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from headrace.cores.raft.messages import Batch
    from headrace.cores.raft.outputs import AppendControl
    from headrace.records.compression import Bytes
    from headrace.storage.flush_job import FlushJob
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir
    from headrace.storage.span import Span

Result = TypeVar("Result")

READ_BYTES = 8 * 1024 * 1024
"""How much of the log is read and decoded at a time."""


class Decision(Struct, frozen=True):
    """One batch of the log, taken apart; a control batch has no records."""

    base_offset: int
    end_offset: int
    """Behind its last record."""
    epoch: int
    timestamp_ms: int
    size: int
    records: Sequence[MetadataRecord]


class Outline(Struct, frozen=True):
    """What the core must know of a log: its epochs with their first offsets, and the voter sets along it."""

    epochs: list[tuple[int, int]]
    voters: list[tuple[int, VoterSet]]


class MetadataLog:
    """The log `__cluster_metadata-0`, as the quorum uses it."""

    def __init__(self, log: Log, log_dir: LogDir, *, executor: Executor, clock: Callable[[], int]) -> None:
        self.log = log
        self._log_dir = log_dir
        self._executor = executor
        self._clock = clock
        self._flush: asyncio.Task[None] | None = None
        self._wanted: tuple[int, int] | None = None
        """The offset and generation of the flush that was asked for last."""
        self._shape = asyncio.Lock()
        """Held while the log is read for the image, or loses its end or its beginning; all of it in threads."""

    @property
    def start_offset(self) -> int:
        """Where the log begins."""
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset the next record will have."""
        return self.log.log_end_offset

    @property
    def size_bytes(self) -> int:
        """The batches' bytes."""
        return self.log.size_bytes

    # Opening; in a thread

    def make_safe(self) -> None:
        """Flush what an unclean stop left in the page cache: the core takes all that it finds for safe; blocking."""
        job = self.log.flush_job()
        if job is not None:
            job.run()
            self.log.flushed(job)

    def outline(self) -> Outline:
        """Walk over the whole log, checking every batch: half of the metadata is worse than none; blocking."""
        found = Outline([], [])
        for header, batch in self._batches():
            if not found.epochs or header.leader_epoch > found.epochs[-1][0]:
                found.epochs.append((header.leader_epoch, header.base_offset))
            if header.is_control and (voters := voters_in(batch)) is not None:
                found.voters.append((header.last_offset, voters))
        return found

    def _batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        offset = self.start_offset
        while offset < self.end_offset:
            data = self.log.read(offset, max_bytes=READ_BYTES, limit_offset=self.end_offset).load()
            for header, batch in self._checked(data, offset):
                yield header, batch
                offset = header.next_offset

    def _checked(self, data: Bytes, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches of a piece of the log, none damaged and none missing."""
        view = memoryview(data)
        try:
            for position, _ in split_batches(view):
                header = check_batch(view, position)
                if header.base_offset != offset:
                    raise CorruptBatch(f"a batch at {header.base_offset}, not at {offset}")
                yield header, view[position : position + header.size]
                offset = header.next_offset
        except CorruptBatch as fault:
            raise StorageFault(f"The metadata log {self.log.path} is damaged: {fault}") from fault

    # Writing

    def append_decision(self, records: Sequence[MetadataRecord], epoch: int) -> Decision:
        """Append a decision as one batch: all of it survives a crash, or nothing does."""
        now_ms = self._clock()
        batch = build_batch([NewRecord(now_ms, None, encode_metadata_record(record)) for record in records])
        base_offset = self.log.append(memoryview(batch), read_header(batch), leader_epoch=epoch, now_ms=now_ms)
        return Decision(base_offset, self.end_offset, epoch, now_ms, len(batch), records)

    def withdraw(self, decision: Decision) -> None:
        """Take back the last decision, which nobody heard of; blocking, and only for what must never happen."""
        self._log_dir.truncate(self.log, decision.base_offset)

    def append_control(self, append: AppendControl) -> None:
        """Append the core's own records."""
        assert append.base_offset == self.end_offset, "the core knows where the log ends"
        now_ms = self._clock()
        batch = control_batch(append, timestamp_ms=now_ms)
        self.log.append(memoryview(batch), read_header(batch), leader_epoch=append.epoch, now_ms=now_ms)

    def append_fetched(self, batches: Sequence[Batch]) -> None:
        """Append what the leader sent, as it numbered it; its own decisions are there already."""
        for batch in batches:
            if batch.records is None:
                assert batch.base_offset + batch.count <= self.end_offset, "a decision is written before it is proposed"
            else:
                assert batch.base_offset == self.end_offset, "the core knows where the log ends"
                self.log.append_follower(batch.records, self._clock())

    async def truncate(self, offset: int) -> None:
        """Cut the log off at an offset."""
        await self.quiet()
        async with self._shape:
            await self._in_thread(self._log_dir.truncate, self.log, offset)

    async def begin_again(self, offset: int) -> None:
        """Drop everything and begin at an offset, which a snapshot covers."""
        await self.quiet()
        async with self._shape:
            await self._in_thread(self.begin_again_now, offset)

    def begin_again_now(self, offset: int) -> None:
        """The same at start, in a thread already; blocking."""
        self.log.lower_recovery_point(min(offset, self.start_offset))
        self._log_dir.write_checkpoints()
        self.log.truncate_fully(offset)
        self.log.high_watermark = offset
        self._log_dir.write_checkpoints()

    def raise_start_now(self, offset: int) -> None:
        """Let the log start at a snapshot, at start and in a thread already; blocking."""
        self.committed(offset)
        self.log.advance_start_offset(offset)
        self._log_dir.write_checkpoints()

    async def raise_start(self, offset: int) -> None:
        """Let go of everything before an offset, which a snapshot covers; segments at once."""
        await self.quiet()
        async with self._shape:
            self.log.advance_start_offset(offset)
            deleted = self.log.delete_old_segments(self._clock())
            await self._in_thread(self._log_dir.write_checkpoints)
            for segment in deleted:
                await self._in_thread(segment.remove)

    def committed(self, offset: int) -> None:
        """Take note of how much is committed."""
        self.log.high_watermark = max(self.log.high_watermark, min(offset, self.end_offset))

    # Flushing

    def flush(
        self,
        offset: int,
        generation: int,
        on_flushed: Callable[[int, int], None],
        on_fault: Callable[[StorageFault], None],
    ) -> None:
        """Flush what there is and tell; one that is asked for while another runs comes after it, with all the rest."""
        self._wanted = (offset, generation)
        if self._flush is None:
            self._flush = asyncio.get_running_loop().create_task(self._flush_all(on_flushed, on_fault))

    async def _flush_all(
        self, on_flushed: Callable[[int, int], None], on_fault: Callable[[StorageFault], None]
    ) -> None:
        try:
            while self._wanted is not None:
                (_, generation), self._wanted = self._wanted, None
                end_offset = self.end_offset
                job = self.log.flush_job()
                if job is not None:
                    await self._run(job)
                on_flushed(end_offset, generation)
        except StorageFault as fault:
            on_fault(fault)
        finally:
            self._flush = None

    async def _run(self, job: FlushJob) -> None:
        await self._in_thread(job.run)
        self.log.flushed(job)

    def cancel(self) -> None:
        """Wait for no flush that is under way."""
        if self._flush is not None:
            self._flush.cancel()

    async def quiet(self) -> None:
        """Wait for the flush that is under way, and for the one that waits behind it."""
        while (flush := self._flush) is not None:
            await asyncio.wait({flush})

    # Reading

    def find(self, offset: int, max_bytes: int) -> Span:
        """Batches from an offset on, at least one; whether committed or not."""
        return self.log.read(offset, max_bytes=max_bytes, limit_offset=self.end_offset)

    async def decisions(self, offset: int, limit_offset: int) -> list[Decision]:
        """Some of the log from an offset on, taken apart in a thread."""
        async with self._shape:
            span = self.log.read(offset, max_bytes=READ_BYTES, limit_offset=limit_offset)
            return await self._in_thread(lambda: self.decode(span.load(), offset))

    def decode(self, data: Bytes, offset: int) -> list[Decision]:
        """Take batches apart that begin at an offset; any thread."""
        return [
            Decision(
                header.base_offset,
                header.next_offset,
                header.leader_epoch,
                header.max_timestamp,
                header.size,
                () if header.is_control else decode_records(batch),
            )
            for header, batch in self._checked(data, offset)
        ]

    async def _in_thread(self, work: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)


def decode_records(batch: Bytes) -> list[MetadataRecord]:
    """The metadata records of a batch; StorageFault if one is not known here, as leaving one out would be a lie."""
    try:
        return [decode_metadata_record(bytes(record.value or b"")) for record in walk(batch)]
    except (MalformedRequest, CorruptBatch) as fault:
        raise StorageFault(f"A metadata record cannot be read: {fault}") from fault
