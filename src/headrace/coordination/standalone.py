"""The metadata log of a node that is its own quorum: decide, append, flush, replay, one command at a time.

The log is `__cluster_metadata-0`, in Kafka's record format, so that Kafka's dump tool reads it and a quorum of
several controllers can take it over unchanged.
A command's reply is given only after its records are on disk and the broker has taken them over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.records.batch import BatchHeader, CorruptBatch, check_batch, read_header, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from headrace.cores.controller import Command
    from headrace.cores.metadata import Metadata
    from headrace.model.metadata_records import MetadataRecord
    from headrace.storage.log import Log

EPOCH = 1
RECORD_VERSION = 0
"""No record says more yet than its first version can."""
_READ_BYTES = 8 * 1024 * 1024

Reply = TypeVar("Reply")


class StandaloneMetadata:
    """The one writer of a single-node cluster's metadata."""

    def __init__(
        self,
        log: Log,
        metadata: Metadata,
        *,
        executor: Executor,
        clock: Callable[[], int],
        on_commit: Callable[[Sequence[MetadataRecord]], Awaitable[None]],
    ) -> None:
        self.log = log
        self.metadata = metadata
        self._executor = executor
        self._clock = clock
        self._on_commit = on_commit
        self._turn = asyncio.Lock()
        self._fault: KafkaError | None = None
        self._unfinished: list[MetadataRecord] = []
        """Committed, but the broker's disk was full when it should have made logs of it."""

    def replay(self) -> int:
        """Bring the metadata to the end of the log; blocking, at start. Returns how many records there were."""
        count = 0
        self.log.high_watermark = self.log.log_end_offset
        for header, batch in self._batches():
            if not header.is_control:
                for record in walk(batch):
                    assert record.value is not None, "a metadata record has a value"
                    self.metadata.replay(decode_metadata_record(bytes(record.value)))
                    count += 1
        return count

    def _batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch of the log, none skipped and none damaged: half of the metadata would be worse than no broker."""
        log = self.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            data = memoryview(log.read(offset, max_bytes=_READ_BYTES, limit_offset=log.log_end_offset).load())
            for position, header in split_batches(data):
                try:
                    check_batch(data, position)
                except CorruptBatch as fault:
                    raise StorageFault(f"The metadata log {log.path} is damaged: {fault}") from fault
                if header.base_offset != offset:
                    raise StorageFault(
                        f"The metadata log {log.path} is damaged: a batch at {header.base_offset}, not at {offset}"
                    )
                yield header, data[position : position + header.size]
                offset = header.last_offset + 1

    async def run(self, command: Command[Reply]) -> Reply:
        """Take one decision against the state as it is now, commit it, and give its reply."""
        async with self._turn:
            if self._fault is not None:
                raise self._fault
            outcome = command(self.metadata)
            if outcome.records:
                await self._commit(outcome.records)
            return outcome.reply

    async def finish(self) -> None:
        """Have the broker take over what it could not when it was committed; StorageFault if it still cannot."""
        if self._unfinished:
            async with self._turn:
                await self._on_commit(self._unfinished)
                self._unfinished.clear()

    async def _commit(self, records: Sequence[MetadataRecord]) -> None:
        self._append(records)
        job = self.log.flush_job()
        try:
            if job is not None:
                await asyncio.get_running_loop().run_in_executor(self._executor, job.run)
                self.log.flushed(job)
        except StorageFault as fault:
            # What was appended may or may not survive: only a restart, which reads the log again, can tell.
            self._fault = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {fault}")
            raise self._fault from fault
        self.log.high_watermark = self.log.log_end_offset
        for record in records:
            self.metadata.replay(record)
        try:
            await self._on_commit(records)
        except StorageFault as fault:
            # Committed all the same: what could not be made now is made when there is room.
            self._unfinished += records
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)) from fault

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        """Append a decision as one batch: all of it survives a crash, or nothing does."""
        now_ms = self._clock()
        values = (encode_metadata_record(record, RECORD_VERSION) for record in records)
        batch = build_batch([NewRecord(timestamp=now_ms, key=None, value=value, headers=()) for value in values])
        try:
            self.log.append(memoryview(batch), read_header(batch), leader_epoch=EPOCH, now_ms=now_ms)
        except StorageFault as fault:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log cannot be written: {fault}") from fault
