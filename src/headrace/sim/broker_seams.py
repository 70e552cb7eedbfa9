"""The few names by which a broker reaches the real world, replaced while a simulated run lasts.

All else comes to a broker from outside: files, clock, chance, and an event loop.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.broker import steady_clock, store
from headrace.net import connection
from headrace.storage import log_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headrace.sim.virtual_loop import VirtualLoop


class InlineThreads(Executor):
    """Threads that do everything at once, in the order they were asked."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes what a pool of threads takes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do it."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is for whoever asked
            future.set_exception(error)
        return future


@contextmanager
def virtual_names(loop: VirtualLoop) -> Iterator[None]:
    """Have brokers see the loop's time and chance, and no threads."""
    replaced: list[tuple[Any, str, Any]] = [
        (steady_clock, "time", SimpleNamespace(monotonic_ns=lambda: int(loop.time() * 1e9))),
        (connection, "monotonic", loop.time),
        (store, "uuid4", lambda: UUID(bytes=loop.chance.randbytes(16), version=4)),
        (store, "ThreadPoolExecutor", InlineThreads),
        (log_dir, "ThreadPoolExecutor", InlineThreads),
    ]
    real = [(where, name, getattr(where, name)) for where, name, _ in replaced]
    try:
        for where, name, virtual in replaced:
            setattr(where, name, virtual)
        yield
    finally:
        for where, name, thing in real:
            setattr(where, name, thing)
