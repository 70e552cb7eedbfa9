"""Group commit: one disk flush for everything that was appended while the last one ran.

Flushes run in a few threads, at most one per log; the event loop never waits for a disk.
A log that is asked to flush while it is flushing is flushed once more afterwards, for all who asked meanwhile.
A failed flush is final for its log (the kernel may have dropped the pages): its owner is told, nothing is retried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headrace.model.errors import StorageFault

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from headrace.storage.log import FlushJob, Log


class Flushed(Protocol):
    """The owner of a log that wants it flushed."""

    log: Log

    def on_flushed(self) -> None:
        """The log's recovery point moved."""

    def on_flush_failed(self, fault: StorageFault) -> None:
        """The disk refused; nothing after the recovery point may be promised."""


class Flusher:
    """The flush queue of one broker."""

    def __init__(self, executor: Executor, *, threads: int) -> None:
        self._executor = executor
        self._threads = threads
        self._queue: deque[Flushed] = deque()
        self._waiting: set[Flushed] = set()
        """Owners in the queue, or under way and asked for again."""
        self._running: set[Flushed] = set()
        self._idle: list[asyncio.Future[None]] = []

    def request(self, owner: Flushed) -> None:
        """Flush the owner's log as soon as a thread is free."""
        if owner in self._waiting:
            return
        self._waiting.add(owner)
        if owner not in self._running:
            self._queue.append(owner)
            self._pump()

    def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue and len(self._running) < self._threads:
            owner = self._queue.popleft()
            self._waiting.discard(owner)
            log = owner.log
            try:
                job = log.flush_job()
            except StorageFault as fault:
                owner.on_flush_failed(fault)
                continue
            if job is None:
                owner.on_flushed()
                continue
            self._running.add(owner)
            future = loop.run_in_executor(self._executor, job.run)
            future.add_done_callback(partial(self._done, owner, log, job))
        if not self._running and not self._queue:
            idle, self._idle = self._idle, []
            for waiter in idle:
                if not waiter.done():
                    waiter.set_result(None)

    def _done(self, owner: Flushed, log: Log, job: FlushJob, future: asyncio.Future[None]) -> None:
        self._running.discard(owner)
        fault = future.exception()
        if fault is None:
            log.flushed(job)
            owner.on_flushed()
        elif owner.log is log:
            # Otherwise it was a log that the owner has moved away from.
            owner.on_flush_failed(fault if isinstance(fault, StorageFault) else StorageFault(str(fault)))
        if owner in self._waiting:
            if fault is None:
                self._queue.append(owner)
            else:
                self._waiting.discard(owner)
        self._pump()

    async def drained(self) -> None:
        """Wait until nothing is being flushed."""
        if self._running or self._queue:
            waiter = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            await waiter
