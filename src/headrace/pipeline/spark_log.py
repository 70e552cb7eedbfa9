"""Spark's own words go to a file: a person at a terminal wants one sentence, not warnings and stack traces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OUT, _ERROR = 1, 2


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
