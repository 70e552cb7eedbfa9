"""Whether mapped pages are in memory: mincore(2) through ctypes, and "yes" wherever it cannot be asked.

A page fault on a cold page would stop the event loop for a disk read, so a range is asked about before it is sent.
A cold one is brought in by a thread with madvise(2), which copies nothing and reports a bad disk instead of a signal.
"""

import ctypes
import mmap
import sys

_PAGE = mmap.PAGESIZE
_POPULATE_READ = 22
"""MADV_POPULATE_READ, since Linux 5.14; older ones refuse it."""


class _Buffer(ctypes.Structure):
    """CPython's Py_buffer, of which only the address is read."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def _find(name: str, last: "type[ctypes._SimpleCData[int] | ctypes.c_void_p]") -> "ctypes._FuncPointer | None":
    """A function of the C library that takes a range and one thing more, where it means what Linux means by it."""
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is not None:
        function.argtypes = (ctypes.c_size_t, ctypes.c_size_t, last)
        function.restype = ctypes.c_int
    return function


_mincore = _find("mincore", ctypes.c_void_p)
_madvise = _find("madvise", ctypes.c_int)


def address_of(view: memoryview) -> int:
    """Where a buffer begins in memory, or 0 if this interpreter will not say."""
    if _mincore is None or sys.implementation.name != "cpython":
        return 0
    buffer = _Buffer()
    if ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0) != 0:
        return 0
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address


def is_resident(address: int, length: int, position: int, size: int) -> bool:
    """Whether every page under [position, position + size) of a mapping of `length` bytes is in memory."""
    if address == 0 or _mincore is None or size <= 0:
        return True
    start = position - position % _PAGE
    pages = (min(position + size, length) - start + _PAGE - 1) // _PAGE
    answer = ctypes.create_string_buffer(pages)
    if _mincore(address + start, pages * _PAGE, answer) != 0:
        return True
    return b"\x00" not in answer.raw


def warm(view: memoryview) -> bool:
    """Bring every page under a view into memory; blocking, without the interpreter's lock. False if that cannot be."""
    address = address_of(view)
    if address == 0 or _madvise is None:
        return False
    start = address - address % _PAGE
    failed: int = _madvise(start, address + len(view) - start, _POPULATE_READ)
    return not failed
