"""Machine code for the loops over records: compiled once per machine, loaded from a cache ever after.

Compiling takes some seconds and happens at the first import of a module with kernels. numba keeps the result beside the
module, in `__pycache__`, or under the user's cache directory where that cannot be written. Every kernel has exactly one
signature, so processes that compile at once write the same files; the lock only spares them doing the work twice.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy.typing as npt
from numba import types

try:
    import fcntl
except ImportError:  # Windows: no lock, twice the work
    fcntl = None  # type: ignore[assignment]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
ByteArray: TypeAlias = Any
Int32Array: TypeAlias = Any
Int64Array: TypeAlias = Any
FloatArray: TypeAlias = Any
"""Arrays as kernels see them: what is in them are numbers of the machine, and numba checks them by the signature."""

int8 = cast("Callable[[Any], int]", types.int8)
uint8 = cast("Callable[[Any], int]", types.uint8)
int64 = cast("Callable[[Any], int]", types.int64)
uint64 = cast("Callable[[Any], int]", types.uint64)
float64 = cast("Callable[[Any], float]", types.float64)
"""The machine's numbers: types in a signature, conversions in a kernel."""

READ_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
READ_INT32 = types.Array(types.int32, 1, "C", readonly=True)
READ_INT64 = types.Array(types.int64, 1, "C", readonly=True)
READ_TABLE = types.Array(types.int64, 2, "C", readonly=True)
BYTES = types.Array(types.uint8, 1, "C")
INT32 = types.Array(types.int32, 1, "C")
INT64 = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.int64, 2, "C")
FLOAT_TABLE = types.Array(types.float64, 2, "C")
BYTE_TABLE = types.Array(types.uint8, 2, "C")

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""Kernels allocate nothing, so they need not count references to what they are given, which costs more than they do."""
_KERNEL_MODULES = (
    "decode_kernels", "encode_kernels", "json_kernels", "object_kernels", "repeat_kernels", "time_kernels",
)  # fmt: skip


def kernel(*signature: Any, returns: Any = int64) -> Callable[[Kernel], Kernel]:
    """Compile a function for just these argument types, or load it; it runs without the interpreter's lock."""

    def compile_it(function: Kernel) -> Kernel:
        with _one_at_a_time(function.__code__.co_filename):
            compiled: Kernel = numba.njit(returns(*signature), cache=True, **_OPTIONS)(function)
        return compiled

    return compile_it


def part(function: Kernel) -> Kernel:
    """Mark a function that kernels of the same file call; it is compiled into each of them."""
    inlined: Kernel = numba.njit(forceinline=True, **_OPTIONS)(function)
    return inlined


def reading(array: npt.NDArray[Any]) -> Any:
    """The same memory as an array nobody writes to: the one kind of input the kernels are compiled for."""
    view = array.view()
    view.flags.writeable = False
    return view


def prepare() -> None:
    """Compile or load every kernel now, rather than when the first record comes."""
    for module in _KERNEL_MODULES:
        importlib.import_module(f"headrace.spark.{module}")


@contextmanager
def _one_at_a_time(path: str) -> Iterator[None]:
    """Let one process at a time compile a file's kernels; the others then find them in the cache.

    The lock is on the source file itself, so nothing has to be made or cleared away, and it ends with its process.
    """
    if fcntl is None:
        yield
        return
    with open(path, "rb") as source:  # noqa: PTH123  (the path is the compiler's, and only locked)
        with suppress(OSError):  # A file system without locks.
            fcntl.flock(source, fcntl.LOCK_EX)
        yield
