"""Being asked to end: by Ctrl-C, by a signal, or by the note that `headrace pipeline stop` leaves."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any, Self

from headrace.pipeline.runs import is_asked_to_stop

_SLICE_S = 0.1


class StopRequest:
    """A context in which the signals that end a program only leave a note; a second one ends it at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._signals = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self.listen()
        return self

    def listen(self) -> None:
        """Take the signals, also back from Spark, which takes Ctrl-C when it starts."""
        # Only the main thread may say how signals are handled; in another one nobody sends us any.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.signal(number, self._note)
                self._before.setdefault(number, before)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        return self._signals > 0 or is_asked_to_stop(self._name)

    def wait(self, seconds: float) -> None:
        """Pause, but not for long once somebody asks."""
        end = time.monotonic() + seconds
        while not self and (left := end - time.monotonic()) > 0:
            time.sleep(min(_SLICE_S, left))

    def _note(self, number: int, _: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt
