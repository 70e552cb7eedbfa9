"""Who waits for what of a partition, other than its producers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.held_partition import HeldPartition
    from headrace.model.errors import KafkaError
    from headrace.storage.log import Log


class FetchWaiter(Protocol):
    """Somebody parked until there is more to read."""

    def wake(self) -> None:
        """More may be readable now."""


class ReplicaWaiter(Protocol):
    """A follower's fetch, parked until something is appended, or the marks have moved."""

    def wake_for(self, partition: HeldPartition) -> None:
        """There is something new in a partition, or it is led here no longer."""

    def wake_for_marks(self, partition: HeldPartition) -> None:
        """The high watermark or the log start is another now: to be told soon, but not at the price of a fetch each."""


class LowWaiters:
    """Deletions of records that wait until every replica starts later."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Callable[[KafkaError | None], None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, offset: int, done: Callable[[KafkaError | None], None]) -> None:
        """Tell `done` when the low watermark has reached an offset."""
        self._waiting.append((offset, done))

    def tell(self, low_watermark: int) -> None:
        """The replicas have come so far."""
        waiting, self._waiting = self._waiting, []
        for offset, done in waiting:
            if offset <= low_watermark:
                done(None)
            else:
                self._waiting.append((offset, done))

    def refuse(self, error: KafkaError) -> None:
        """It will not come to that."""
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            done(error)


class FlushWaiters:
    """Those who wait until what was in the log when they came is on the disk."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, end_offset: int) -> asyncio.Future[None]:
        """Somebody waits for an offset."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((end_offset, done))
        return done

    def tell(self, log: Log) -> None:
        """The disk has more, or will never have it; a log that was truncated meanwhile counts as far as it goes."""
        waiting, self._waiting = self._waiting, []
        for end_offset, done in waiting:
            if done.done():
                continue
            if log.recovery_point >= min(end_offset, log.log_end_offset) or log.fault is not None:
                done.set_result(None)
            else:
                self._waiting.append((end_offset, done))
