"""Writes rows to topics: Spark's side of the sink, for batches and for streams.

By default records are written at least once: a task that is repeated writes its rows again. With `exactlyOnce=true` a
stream's batches are made of transactions (see `exactly_once`); a batch job commits the transactions of its tasks when
all are done, one after the other. A write within foreachBatch is a stream's: Spark's data sources in Python have no
output mode update, which is had that way.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.client.fault import BadOption, ClientFault
from headrace.model.errors import KafkaError
from headrace.spark.decision import NOTHING
from headrace.spark.exactly_once import (
    OFFSETS_TOPIC,
    Contribution,
    DriverSide,
    Opening,
    Query,
    TaskSide,
    abandon,
    abandon_all,
)
from headrace.spark.links import links_to
from headrace.spark.option_table import PREFIX, SinkOptions, sink_options
from headrace.spark.producer_settings import producer_settings
from headrace.spark.sending import refusal
from headrace.spark.sink_columns import sink_columns
from headrace.spark.transactions import Coordinators

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.task_writing import TaskWriting

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
"""Where Spark tells a task which query and which batch it works for."""
NO_BATCH = -1


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int
    contribution: Contribution | None = None


class _Sink:
    """What batches and streams have in common."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._options: SinkOptions = sink_options(options)
        self._settings = producer_settings(self._options)
        self._columns = sink_columns(schema, topic=self._options.topic)

    def _writing(self) -> TaskWriting:
        settle()
        from headrace.spark.task_writing import TaskWriting  # noqa: PLC0415 - numba and Arrow are for workers

        return TaskWriting(self._options, self._settings, self._columns, task=_task())

    def _coordinators(self) -> Coordinators:
        return Coordinators(links_to(self._options.connection), self._settings)

    def _write_part(self, batches: Iterator[pa.RecordBatch], *, prefix: str) -> TaskReport:
        """Write this task's part of a stream's batch, unless it is written already."""
        query = Query(prefix=prefix, query_id=_property(QUERY_ID), topic=self._options.topic or OFFSETS_TOPIC)
        batch_id, task = int(_property(BATCH_ID)), _task()
        side = TaskSide(self._coordinators(), query, task=task, batch_id=batch_id)
        try:
            is_skipped = side.open() is Opening.SKIP
            if is_skipped:
                rows, part = sum(batch.num_rows for batch in batches), NOTHING
            else:
                rows, part = self._writing().exactly_once(batches, side)
        except KafkaError as error:
            raise refusal(f"Task {task} cannot take part in {query.group}", error.code) from error
        return TaskReport(
            rows,
            Contribution(query=query, batch_id=batch_id, task=task, rows=rows, is_skipped=is_skipped, part=part),
        )


class BatchSink(_Sink, DataSourceArrowWriter):
    """`df.write.format("headrace")`; within foreachBatch `exactlyOnce` means what it means for a stream."""

    def __init__(self, schema: StructType, options: Mapping[str, str], *, overwrite: bool = False) -> None:
        super().__init__(schema, options)
        if overwrite:
            raise BadOption("A topic cannot be overwritten", "Use mode append; to begin anew, delete the topic first.")
        self._query = Query(
            prefix=self._options.transactional_id_prefix, query_id=str(uuid.uuid4()), topic=OFFSETS_TOPIC
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write the rows of one task."""
        if not self._options.exactly_once:
            return TaskReport(self._writing().at_least_once(iterator))
        if _is_in_stream():
            return self._write_part(iterator, prefix=self._prefix_in_stream())
        identity = self._coordinators().identify(self._query.transactional_id(_task()))
        rows, part = self._writing().in_transaction(iterator, identity)
        return TaskReport(rows, Contribution(query=self._query, batch_id=NO_BATCH, task=_task(), rows=rows, part=part))

    def _prefix_in_stream(self) -> str:
        """What distinguishes this write from the others of its function: a name of its own, and the topic."""
        given = self._options.transactional_id_prefix
        if given == PREFIX:
            raise BadOption(
                "exactlyOnce=true within foreachBatch needs a transactionalIdPrefix",
                "Give every write of the function one of its own: a batch that comes again is recognised by it.",
            )
        return f"{given}-{self._options.topic}" if self._options.topic else given

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done: commit their transactions."""
        contributions = _contributions(messages)
        coordinators = self._coordinators()
        if contributions and contributions[0].batch_id != NO_BATCH:
            DriverSide(coordinators).commit(contributions, contributions[0].batch_id)
            return
        written = [one for one in contributions if not one.part.is_empty]
        for number, one in enumerate(written):
            try:
                coordinators.end(one.identity, commit=True)
            except (KafkaError, ClientFault) as error:
                for other in written[number:]:
                    abandon(coordinators, other.identity)
                raise ClientFault(
                    f"Of {len(written)} transactions {number} were committed, then one was not: {error}",
                    "If none was, run the job again; otherwise remove what it wrote first.",
                ) from error

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task failed: abort what the others wrote."""
        contributions = _contributions(messages)
        if contributions and contributions[0].batch_id != NO_BATCH:
            batch_id = contributions[0].batch_id
            DriverSide(self._coordinators()).abort(contributions, batch_id, tasks=len(messages))
        elif self._options.exactly_once:
            abandon_all(self._coordinators(), self._query, contributions, tasks=len(messages))


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """`df.writeStream.format("headrace")`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write the rows that a batch has for one task."""
        if self._options.exactly_once:
            return self._write_part(iterator, prefix=self._options.transactional_id_prefix)
        return TaskReport(self._writing().at_least_once(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """All tasks of a batch are done: commit what they wrote."""
        contributions = _contributions(messages)
        if contributions:
            DriverSide(self._coordinators()).commit(contributions, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """A batch failed: abort what its tasks wrote, so that readers need not wait for it."""
        contributions = _contributions(messages)
        if contributions:
            DriverSide(self._coordinators()).abort(contributions, batchId, tasks=len(messages))


def _contributions(messages: Sequence[WriterCommitMessage | None]) -> list[Contribution]:
    reports = [message for message in messages if isinstance(message, TaskReport)]
    return [report.contribution for report in reports if report.contribution is not None]


def _task() -> int:
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _is_in_stream() -> bool:
    context = TaskContext.get()
    return context is not None and context.getLocalProperty(QUERY_ID) is not None


def _property(name: str) -> str:
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(name)
    if found is None:
        raise ClientFault(
            f"Spark does not say its {name}, which exactlyOnce=true needs", "Write with a micro-batch trigger."
        )
    return str(found)


@cache
def settle() -> None:
    """Once in each worker: import what is large, and let the garbage collector forget it.

    Spark's workers collect garbage after every task. With numba and Arrow loaded, that costs more than the task.
    """
    import headrace.spark.task_writing  # noqa: F401, PLC0415

    gc.collect()
    gc.freeze()
