"""What this process costs, under the names that Prometheus' own clients give it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.model.exposition import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.model.exposition import Family

_STARTED_S = time.time()
_STATM = Path("/proc/self/statm")
_FILES = Path("/proc/self/fd")


def process_families() -> Iterator[Family]:
    """CPU, memory and open files; what the system does not tell is left out."""
    yield counter("process_cpu_seconds_total", "CPU time used, by user and system.", round(time.process_time(), 3))
    yield gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", round(_STARTED_S, 3))
    resident = _resident_bytes()
    if resident is not None:
        yield gauge("process_resident_memory_bytes", "Memory the process holds.", resident)
    if _FILES.is_dir():
        yield gauge("process_open_fds", "Files and sockets that are open.", len(os.listdir(_FILES)))  # noqa: PTH208
    limit = _files_max()
    if limit is not None:
        yield gauge("process_max_fds", "How many files and sockets may be open.", limit)


def _resident_bytes() -> int | None:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _resident_bytes_at_most()


def _resident_bytes_at_most() -> int | None:
    """Where only the highest value there ever was can be had."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


def _files_max() -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
