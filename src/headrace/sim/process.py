"""Whose turn it is: every callback on the virtual loop belongs to a process, which can be held up or ended at any time.

The process travels in a context variable, as contexts do: whatever a process starts is its own.
"""

from __future__ import annotations

from collections import deque
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

PROCESS: ContextVar[Process] = ContextVar("process")


class Killed(Exception):
    """A process was ended amid an operation on its disk; nobody is meant to catch it."""


class Process:
    """One program that runs on a host, until it is ended."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self.ready: deque[asyncio.Handle] = deque()
        """What it does next, in the order asyncio promises."""
        self.tasks: list[asyncio.Task[Any]] = []
        """All that it began. What never ended is kept: a coroutine thrown away would still run its `finally`."""
        self.context = Context()
        self.context.run(PROCESS.set, self)

    def end(self) -> None:
        """End as `kill -9` ends a process: not one more step."""
        self.is_alive = False
        self.ready.clear()

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Take note of something it began."""
        if len(self.tasks) >= 256:
            self.tasks = [one for one in self.tasks if not one.done()]
        self.tasks.append(task)
