"""Reading topics as they grow: the planner's side of a streaming query, and its tasks.

Spark asks for the latest offset, writes it to its checkpoint, and only then has the range read: whatever is wrong with
the topics is found before, so that a checkpoint never holds a batch that cannot be read. One object plans for the life
of a query; copies of it, without a connection, read in the workers.

Spark tells that a batch is done only with the next one. But it asks what is next only when the last batch is done, also
for a last time at the end of trigger(availableNow): so that is when a group's offsets are committed.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from headrace.client.records import TopicPartition
from headrace.spark import offsets as core
from headrace.spark import task
from headrace.spark.catalog import Catalog
from headrace.spark.endpoints import report_losses, start_of
from headrace.spark.offsets import Offsets, from_json, name_of, to_json
from headrace.spark.positions import EARLIEST, Kind
from headrace.spark.task import ReadTask

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.option_table import SourceOptions

LOG = logging.getLogger("headrace.spark")
Json = Mapping[str, Mapping[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches, and reads them."""

    def __init__(self, schema: StructType, options: SourceOptions, name: str = "") -> None:
        """`name` is given to copies: workers that have several of them know by it that they read for one query."""
        self._schema = schema
        self._options = options
        self._name = name or str(uuid.uuid4())
        self._opened: Catalog | None = None
        self._initial: dict[TopicPartition, int] | None = None
        self._is_pinned = False
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._committed: dict[TopicPartition, int] = {}
        self._triggered_at: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to the workers: no connections, and nothing of how far the query is."""
        return StreamReader, (self._schema, self._options, self._name)

    @property
    def _catalog(self) -> Catalog:
        if self._opened is None:
            self._opened = Catalog(self._options)
        return self._opened

    # --- what Spark asks, in the order it does

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now: the query ends when that is read."""
        self._target = self._catalog.latest()

    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802
        """Where a query without a checkpoint begins; Spark asks several times, and means one answer."""
        if self._initial is None:
            catalog = self._catalog
            self._initial = start_of(catalog, self._options, catalog.places())
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch may hold, as the options say; Spark hands it to `latestOffset`, or something else."""
        if self._options.offsets_max is not None:
            return ReadMaxRows(self._options.offsets_max)
        if self._options.offsets_min is not None:
            return ReadMinRows(self._options.offsets_min)
        return ReadAllAvailable()

    def latestOffset(self, start: Json, limit: ReadLimit) -> dict[str, dict[str, int]]:  # noqa: N802
        """How far the next batch goes; the last one, which ended at `start`, is done."""
        before = from_json(start)
        latest = self._look(before)
        fresh = core.anew(before, latest)
        earliest = self._catalog.find(dict.fromkeys(fresh, EARLIEST))
        report_losses(core.losses(before, latest, earliest), self._options)
        if self._needs_pin(before):
            return to_json(before)
        begin = core.begins(before, latest, earliest)
        if self._target is not None:
            latest = core.capped(latest, self._target, before)
        elif self._may_wait(begin, latest, limit):
            return to_json(before)
        self._triggered_at = time.monotonic()
        return to_json(core.limited(begin, latest, limit.max_rows if isinstance(limit, ReadMaxRows) else None))

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """The tasks of a batch: the same each time the same batch is run."""
        before, after = from_json(start), from_json(end)
        fresh = core.anew(before, after)
        earliest = self._catalog.find_what_is_there(dict.fromkeys(fresh, EARLIEST))
        gone = [place for place in fresh if place not in earliest]
        report_losses([f"{name_of(place)} is gone before it was read" for place in gone], self._options)
        begin = core.begins(before, after, {**after, **earliest})
        tasks = core.plan(
            core.ranges(begin, after),
            tasks_max=self._options.tasks_max,
            partitions_min=self._options.partitions_min,
            partition_records_max=self._options.partition_records_max,
        )
        return [ReadTask(tuple((one, self._catalog.leader_of(one.place)) for one in group)) for group in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One task's records."""
        assert isinstance(partition, ReadTask)
        return task.run(partition, self._schema, self._options, self._name)

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:  # noqa: N802
        """Where the topics ended when we last looked: the progress of the query shows its lag."""
        return None if self._latest is None else to_json(self._latest)

    def commit(self, end: Json) -> None:
        """The batch that ended here is done; mostly, `latestOffset` has taken note of that before."""
        pending = self._uncommitted(from_json(end))
        if pending:
            self._note(pending, self._catalog.commit(self._options.commit_group, pending))

    def stop(self) -> None:
        """Hang up."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    # --- how it is answered

    def _look(self, before: Offsets) -> dict[TopicPartition, int]:
        """Where the topics end, and tell the group at the same time how far we are."""
        pending = self._uncommitted(before)
        if pending:
            self._latest, problem = self._catalog.latest_and_commit(self._options.commit_group, pending)
            self._note(pending, problem)
        else:
            self._latest = self._catalog.latest()
        return self._latest

    def _uncommitted(self, offsets: Offsets) -> dict[TopicPartition, int]:
        if not self._options.commit_group:
            return {}
        return {place: offset for place, offset in offsets.items() if self._committed.get(place) != offset}

    def _note(self, offsets: Offsets, problem: Exception | None) -> None:
        """Spark's checkpoint is what counts; a group that does not show it is no reason to stop."""
        if problem is None:
            self._committed.update(offsets)
        else:
            LOG.warning("The progress of group '%s' is not committed: %s", self._options.commit_group, problem)

    def _needs_pin(self, before: Offsets) -> bool:
        """Whether this is a first batch that begins at the end of a log, which moves.

        Where a query began is not in its checkpoint before its first batch is. Were that batch to fail, a restart would
        begin at a later end, and skip what the batch held. So the first batch is an empty one, that only says where.
        """
        position = self._options.starting
        by_time = position.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}
        is_fleeting = position.is_fleeting and (self._options.by_timestamp_or_latest or not by_time)
        if self._is_pinned or not is_fleeting or before != self._initial:
            return False
        self._is_pinned = True
        return True

    def _may_wait(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Whether to wait for more (minOffsetsPerTrigger); never before the first batch, nor where Spark wants all."""
        if self._triggered_at is None or isinstance(limit, ReadAllAvailable):
            return False
        return core.is_worth_waiting(
            begin,
            latest,
            records_min=self._options.offsets_min,
            waited_ms=int((time.monotonic() - self._triggered_at) * 1000),
            wait_max_ms=self._options.trigger_delay_max_ms,
        )
