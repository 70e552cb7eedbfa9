"""Whether mapped pages are in memory: mincore(2) through ctypes, and "yes" wherever it cannot be asked.

A page fault on a cold page would stop the event loop for a disk read, so a range is asked about before it is sent.
"""

import ctypes
import mmap
import sys

_PAGE = mmap.PAGESIZE


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


def _find_mincore() -> "ctypes._FuncPointer | None":
    """The C library's mincore, where there is one that means what Linux means by it."""
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "mincore", None)
    if function is not None:
        function.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
        function.restype = ctypes.c_int
    return function


_mincore = _find_mincore()


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
