"""A directory of Parquet files that a stream adds to: each batch once, and few files in the end.

Spark's own file sink keeps a list of its files, so nobody may merge them. Here a batch is written beside the table and
then moved in under names that carry its number. A batch that comes again after a crash finds its files by that number
and replaces them. Files of a partition to which nothing was added for a while are merged into one; a journal of what
is merged into what makes a crash in the middle harmless.

Everything goes through Hadoop's file systems, so a table may lie wherever Spark can write.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STAGING, JOURNAL = "_staging", "_compaction.json"
MERGED_BYTES_MAX = 128 * 1024 * 1024
_TIME = re.compile(r"(year|month|day|hour)\(([\w.]+)\)\Z")
_FORMATS = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd", "hour": "yyyy-MM-dd-HH"}
_BATCH = re.compile(r"batch-(\d+)-")


def partition_column(text: str) -> tuple[str, Column | None]:
    """A partition's column: its name, and what it is made of if it is not there already, as in `day(ts)`."""
    found = _TIME.match(text)
    if found is None:
        return text, None
    return found[1], F.date_format(F.col(found[2]), _FORMATS[found[1]])


class FileFact(NamedTuple):
    """One file of the table."""

    path: str
    directory: str
    name: str
    size: int
    modified_ms: int


class Lake:
    """The table of one sink, for one life of its query."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        *,
        partition_by: Sequence[str] = (),
        compact_after_ms: int | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._spark = spark
        self._path = path
        self._partition_by = list(partition_by)
        self._compact_after_ms = compact_after_ms
        self._now_ms = now_ms
        self._files = HadoopFiles(spark, path)
        self._written_ms: dict[str, int] | None = None
        """When each partition that may have files to merge was last written to; None before the first batch."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Add a batch; called by Spark."""
        staging = f"{self._path}/{STAGING}"
        if self._written_ms is None:
            self._begin(batch_id)
        self._files.delete(staging)
        # An empty batch leaves no file where there are partitions, and an empty one where there are none.
        if self._partition_by:
            frame.repartition(*self._partition_by).write.partitionBy(*self._partition_by).parquet(staging)
        elif not frame.isEmpty():
            frame.write.parquet(staging)
        for number, fact in enumerate(list(self._files.walk(staging))):
            table, _, partition = fact.directory.rpartition(f"/{STAGING}")
            directory = table + partition
            self._files.move(fact.path, directory, f"batch-{batch_id:09}-{number:05}.parquet")
            self._note(directory, self._now_ms())
        self._files.delete(staging)
        self._compact_what_rests(batch_id)

    def _begin(self, batch_id: int) -> None:
        """Finish what a crash interrupted: half a merge, or half of this very batch."""
        self._written_ms = {}
        self._finish_merge()
        for fact in list(self._files.walk(self._path)):
            found = _BATCH.match(fact.name)
            if found and int(found[1]) == batch_id:
                self._files.delete(fact.path)
            else:
                self._note(fact.directory, fact.modified_ms)

    def _note(self, directory: str, now_ms: int) -> None:
        if self._compact_after_ms is not None and self._written_ms is not None:
            self._written_ms[directory] = max(now_ms, self._written_ms.get(directory, 0))

    # --- merging

    def _compact_what_rests(self, batch_id: int) -> None:
        """Merge the files of partitions that have come to rest; this batch's own are not certain yet and stay."""
        if self._compact_after_ms is None or self._written_ms is None:
            return
        before = self._now_ms() - self._compact_after_ms
        for directory in [place for place, at in self._written_ms.items() if at <= before]:
            facts = [one for one in self._files.walk(directory, deep=False) if not _is_of(one.name, batch_id)]
            del self._written_ms[directory]
            if len(facts) > 1:
                self._merge(directory, facts, batch_id)

    def _merge(self, directory: str, facts: Sequence[FileFact], batch_id: int) -> None:
        staging = f"{self._path}/{STAGING}"
        pieces = 1 + sum(one.size for one in facts) // MERGED_BYTES_MAX
        if len(facts) <= pieces:
            return
        self._spark.read.parquet(*(one.path for one in facts)).coalesce(pieces).write.parquet(staging)
        moves = [
            (one.path, f"merged-{batch_id:09}-{number:05}.parquet")
            for number, one in enumerate(self._files.walk(staging))
        ]
        plan = {"directory": directory, "moves": moves, "old": [one.path for one in facts]}
        self._files.write_text(f"{self._path}/{JOURNAL}", json.dumps(plan))
        self._finish_merge()

    def _finish_merge(self) -> None:
        """Carry out the journal, from wherever it was left."""
        journal = f"{self._path}/{JOURNAL}"
        text = self._files.read_text(journal)
        if text is None:
            return
        try:
            plan = json.loads(text)
        except ValueError:
            # Cut short while it was written: nothing had begun.
            self._files.delete(journal)
            return
        for staged, name in plan["moves"]:
            if self._files.exists(staged):
                self._files.move(staged, plan["directory"], name)
        for old in plan["old"]:
            self._files.delete(old)
        self._files.delete(journal)
        self._files.delete(f"{self._path}/{STAGING}")


def _is_of(name: str, batch_id: int) -> bool:
    found = _BATCH.match(name)
    return bool(found) and int(found[1]) == batch_id  # type: ignore[index]


class HadoopFiles:
    """The few things asked of a file system, through Hadoop's."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        assert spark._jvm is not None, "Spark has a JVM"  # noqa: SLF001
        self._jvm: Any = spark._jvm  # noqa: SLF001
        configuration = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        self._system = self._at(path).getFileSystem(configuration)

    def _at(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def walk(self, directory: str, *, deep: bool = True) -> Iterator[FileFact]:
        """The Parquet files below a directory, in order of their names; nothing if there is no such directory."""
        if not self.exists(directory):
            return
        found = sorted(self._system.listStatus(self._at(directory)), key=lambda one: str(one.getPath().getName()))
        for status in found:
            path, name = str(status.getPath().toString()), str(status.getPath().getName())
            if name.startswith(("_", ".")):
                continue
            if status.isDirectory():
                if deep:
                    yield from self.walk(path)
            elif name.endswith(".parquet"):
                parent = str(status.getPath().getParent().toString())
                yield FileFact(path, parent, name, int(status.getLen()), int(status.getModificationTime()))

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        return bool(self._system.exists(self._at(path)))

    def move(self, path: str, directory: str, name: str) -> None:
        """Rename a file; OSError if the file system will not."""
        self._system.mkdirs(self._at(directory))
        target = self._at(f"{directory}/{name}")
        self._system.delete(target, False)
        if not self._system.rename(self._at(path), target):
            raise OSError(f"{path} cannot be moved to {directory}")

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory, if it is there."""
        self._system.delete(self._at(path), True)

    def write_text(self, path: str, text: str) -> None:
        """Write a small file."""
        stream = self._system.create(self._at(path), True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def read_text(self, path: str) -> str | None:
        """Read a small file; None if it is not there."""
        if not self.exists(path):
            return None
        stream = self._system.open(self._at(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()
