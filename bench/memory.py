"""Memory that costs the same whoever uses it first.

A virtual machine is often lent its memory page by page: the first touch of a page is served by the host and costs
ten times what the same write costs afterwards, and it is charged to whoever happens to do it.
Without this, what a broker's write into the page cache costs says which pages it was given, not what it did.
"""

import mmap
from pathlib import Path
from typing import Final

TOUCHED_BYTES: Final = 3 * 1024**3
"""More than any one workload puts into the page cache."""
_STEP: Final = 64 * 1024**2
_MADV_POPULATE_WRITE: Final = 23


def touch_free_memory() -> None:
    """Write to as much free memory as a workload may need and give it back; the kernel hands out those pages next."""
    size = min(TOUCHED_BYTES, _available_bytes() // 3)
    with mmap.mmap(-1, max(size, mmap.PAGESIZE)) as memory:
        for start in range(0, size, _STEP):
            _populate(memory, start, min(_STEP, size - start))


def _populate(memory: mmap.mmap, start: int, length: int) -> None:
    try:
        memory.madvise(_MADV_POPULATE_WRITE, start, length)
    except OSError:
        # A kernel before 5.14: write to each page instead.
        for position in range(start, start + length, mmap.PAGESIZE):
            memory[position] = 1


def _available_bytes() -> int:
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0
