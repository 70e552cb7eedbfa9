"""A task's rows become batches and go out: gathered into blocks, routed, encoded, numbered and sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.spark.encoder import encode
from headrace.spark.fingerprint import Fingerprint
from headrace.spark.outbox import Batch, Place
from headrace.spark.producer_identity import NO_SEQUENCE, Identity
from headrace.spark.routing import Rows, route
from headrace.spark.sending import Sender

if TYPE_CHECKING:
    from headrace.spark.links import Links
    from headrace.spark.producer_settings import ProducerSettings
    from headrace.spark.sink_columns import SinkColumns

BLOCK_BYTES = 8 * 1024 * 1024
"""So much is gathered before it is split by partition: Spark hands out 10,000 rows at a time, which is little."""
SMALLEST_BATCH_BYTES = 1024
"""A batch that is refused as too large is halved down to this; then it is one record that is too large."""


def blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger pieces; empty ones are left out."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            gathered.append(batch)
            size += batch.nbytes
        if size >= BLOCK_BYTES:
            yield _joined(gathered)
            gathered, size = [], 0
    if gathered:
        yield _joined(gathered)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class Producing:
    """Writes rows with one identity; `sequences` go on where its last batches ended."""

    def __init__(
        self,
        links: Links,
        settings: ProducerSettings,
        *,
        columns: SinkColumns,
        topic: str,
        identity: Identity,
        sequences: dict[Place, int],
        turn: int,
        admit: Callable[[Sequence[Place]], None] | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._settings = settings
        self._columns = columns
        self._topic = topic
        self._identity = identity
        self._sequences = sequences
        self._turn = turn
        self._batches = 0
        self._clock_ms = clock_ms
        self._sender = Sender(links, settings, identity, known=sequences, admit=admit)
        self.rows = 0
        self.fingerprint = Fingerprint()
        """Of rows that are written in a transaction."""

    def write(self, block: pa.RecordBatch) -> None:
        """Send the rows of a block; they may still be on their way when this returns."""
        routed = list(
            route(
                block,
                self._columns,
                topic=self._topic,
                count_of=self._sender.leaders.count_of,
                sticky=self._turn,
                now_ms=self._clock_ms(),
            )
        )
        self._turn += 1
        for place, rows in routed:
            self.rows += len(rows)
            if self._identity.transactional_id is not None:
                self.fingerprint.add(rows.keys, rows.values)
            self._sender.send(self._encoded(place, rows))

    def finish(self) -> None:
        """Wait until everything is written."""
        self._sender.flush()

    def give_up(self) -> None:
        """Send no more."""
        self._sender.give_up()

    def _encoded(self, place: Place, rows: Rows) -> list[Batch]:
        sequence = NO_SEQUENCE
        if self._identity.is_known:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = sequence + len(rows)
        self._batches += 1
        return self._batches_of(
            place, rows, sequence=sequence, bytes_max=self._settings.batch_bytes, turn=(self._batches,)
        )

    def _batches_of(
        self, place: Place, rows: Rows, *, sequence: int, bytes_max: int, turn: tuple[int, ...]
    ) -> list[Batch]:
        found: list[Batch] = []
        start = 0
        encoded = encode(
            rows.keys,
            rows.values,
            rows.headers,
            rows.timestamps_ms,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=sequence,
            transactional=self._identity.transactional_id is not None,
            codec=self._settings.codec,
            max_bytes=bytes_max,
        )
        for number, (data, count) in enumerate(encoded):
            part = rows.slice(start, count)
            first = sequence if sequence == NO_SEQUENCE else sequence + start
            found.append(self._batch(place, part, data, sequence=first, bytes_max=bytes_max, turn=(*turn, number)))
            start += count
        return found

    def _batch(
        self,
        place: Place,
        rows: Rows,
        data: bytes | bytearray | memoryview,
        *,
        sequence: int,
        bytes_max: int,
        turn: tuple[int, ...],
    ) -> Batch:
        def halves() -> list[Batch]:
            return self._batches_of(place, rows, sequence=sequence, bytes_max=bytes_max // 2, turn=turn)

        can_split = len(rows) > 1 and bytes_max > SMALLEST_BATCH_BYTES
        return Batch(place=place, data=data, count=len(rows), turn=turn, split=halves if can_split else None)
