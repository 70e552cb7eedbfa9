"""Ctrl-C and a request to end, noticed between two steps so that a tool can finish what it holds."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

_EXIT_BASE = 128


class Interruption:
    """A context in which the signals that end a tool only leave a note."""

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may say how signals are handled; in another one nobody sends us any.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        return self.signal != 0

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program that a signal ended; 0 without one."""
        return _EXIT_BASE + self.signal if self.signal else 0

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = number
