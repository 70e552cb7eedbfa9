"""Virtual time: what is due next happens next, and nothing else makes time pass.

Everything that happens in a simulated run is an action scheduled here, and everything that is left to chance draws from
the scheduler's `chance`. So a run is a function of its seed.
"""

from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Have it not happen."""
        self.action = None


class Scheduler:
    """The one clock and the one source of chance of a run."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a run must be repeatable
        self.now_ms = 0
        self.events = 0
        """How many things have happened."""
        self._due: list[tuple[int, int, Timer]] = []
        self._count = 0

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Have something happen after a while; of two that are due at once, the one asked for first happens first."""
        timer = Timer(action)
        heapq.heappush(self._due, (self.now_ms + max(delay_ms, 0), self._count, timer))
        self._count += 1
        return timer

    def at(self, when_ms: int, action: Callable[[], None]) -> Timer:
        """Have something happen at a time; at once if that has passed."""
        return self.after(when_ms - self.now_ms, action)

    def step(self) -> bool:
        """Let the next thing happen; False if there is none."""
        while self._due:
            when_ms, _, timer = heapq.heappop(self._due)
            action, timer.action = timer.action, None
            if action is not None:
                self.now_ms = when_ms
                self.events += 1
                action()
                return True
        return False

    def run(self, until_ms: int, check: Callable[[], None] | None = None) -> None:
        """Let everything happen that is due by a time, and check something after each."""
        while self._due and self._due[0][0] <= until_ms:
            if self.step() and check is not None:
                check()
        self.now_ms = max(self.now_ms, until_ms)
