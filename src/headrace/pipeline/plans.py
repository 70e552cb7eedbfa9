"""Spark's plans of a pipeline, without running it and without a broker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.display import LineDisplay
from headrace.pipeline.frames import Frames
from headrace.pipeline.graph import DEAD_LETTERS, query_names
from headrace.pipeline.queries import Queries
from headrace.pipeline.session import Wishes, brokers_of, open_session
from headrace.spark.session import LOCAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plans_of(pipeline: Pipeline, wishes: Wishes, *, session: SparkSession | None = None) -> dict[str, str]:
    """The plan of every query, by name; FileFault if Spark refuses a step."""
    spark = session or open_session(pipeline, wishes.master or LOCAL, LineDisplay(sys.stderr))
    try:
        brokers = brokers_of(pipeline, wishes)
        frames = Frames(spark, pipeline, brokers=brokers)
        frames.build()
        queries = Queries(spark, pipeline, frames, brokers=brokers, checkpoint="", trigger=None, show=print)
        found = {}
        for name in query_names(pipeline):
            is_letters = name.startswith(DEAD_LETTERS)
            frame = frames.dead_letters(name.removeprefix(DEAD_LETTERS)) if is_letters else queries.rows_of(name)
            found[name] = str(frame._jdf.queryExecution().analyzed().toString())  # noqa: SLF001
        return found
    finally:
        if session is None:
            spark.stop()
