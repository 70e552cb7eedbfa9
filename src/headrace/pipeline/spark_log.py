"""Spark's own words go to a file: a person at a terminal wants one sentence, not warnings and stack traces."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OUT, _ERROR = 1, 2
_REFUSALS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers on which pyspark prints every error of a statement, with its stack trace, before it raises it."""
_NEVER = logging.CRITICAL + 1


def quiet_refusals() -> None:
    """Keep pyspark from printing the errors it raises: a run tells each in a sentence, and the whole of it with -v."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  Only now pyspark is sure to be there.

    for name in _REFUSALS:
        # By pyspark's own way: a logger made by Python's would not understand what pyspark tells it.
        PySparkLogger.getLogger(name).setLevel(_NEVER)


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Programs that are started in this block, and all they start, write to a file; we go on as before.

    The JVM takes over our standard streams as they are when it starts, and Python's workers take over the JVM's.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (_OUT, _ERROR)}
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for number in kept:
            os.dup2(target, number)
        yield
    finally:
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
        os.close(target)
