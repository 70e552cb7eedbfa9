"""A streaming query as tests run it: its batches are gathered here, and it can be run again from its checkpoint."""

import time

_WAIT_S = 120.0


class Query:
    """One query over one checkpoint."""

    def __init__(self, spark, options: dict[str, str], schema, checkpoint) -> None:
        self._spark = spark
        self.options = options
        self._schema = schema
        self._checkpoint = checkpoint
        self._running = None
        self.batches: dict[int, list] = {}
        self.fail_in: set[int] = set()
        """Batches that fail after they were read, once."""

    def frame(self):
        """The stream as a DataFrame."""
        reader = self._spark.readStream.format("headrace").options(**self.options)
        return (reader.schema(self._schema) if self._schema else reader).load()

    def start(self, **trigger):
        """Run in the background."""
        writer = self.frame().writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._checkpoint))
        self._running = (writer.trigger(**trigger) if trigger else writer).start()
        return self._running

    def run(self):
        """Read all there is and end; gives the rows of this run."""
        before = set(self.batches)
        self.start(availableNow=True).awaitTermination()
        return [row for number in sorted(set(self.batches) - before) for row in self.batches[number]]

    def rows(self):
        """All rows so far, in the order of their batches."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def wait_for(self, count: int):
        """Wait until so many rows came, or the query fails."""
        deadline = time.monotonic() + _WAIT_S
        while len(self.rows()) < count:
            assert time.monotonic() < deadline, f"{len(self.rows())} of {count} rows came"
            if not self._running.isActive:
                self._running.awaitTermination()
                raise AssertionError(f"the query ended after {len(self.rows())} of {count} rows")
            self._running.awaitTermination(0.05)
        return self.rows()

    def wait_for_failure(self) -> str:
        """Wait until the query fails; gives what it says."""
        try:
            assert self._running.awaitTermination(_WAIT_S) is False, "the query ended well"
        except Exception as error:
            if isinstance(error, AssertionError):
                raise
            return str(error)
        raise AssertionError("the query goes on")

    def progress(self) -> list:
        """What Spark reports of each batch."""
        return [one for one in self._running.recentProgress if one.numInputRows or one.sources]

    def stop(self) -> None:
        """End the query, if it runs."""
        if self._running is not None and self._running.isActive:
            self._running.stop()

    def _take(self, frame, number: int) -> None:
        rows = frame.collect()
        if number in self.fail_in:
            self.fail_in.discard(number)
            raise RuntimeError(f"batch {number} was told to fail")
        self.batches[number] = rows
