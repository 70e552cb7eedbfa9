"""One line that tells a waiting person what happens; on a terminal it counts the seconds in place."""

import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

_REDRAW_SECONDS = 0.2
_BAR_WIDTH = 20
"""Columns of a bar; a line with one still fits where eighty are."""


class Progress:
    """Says what is going on, on standard error so that a command's own output stays clean."""

    __slots__ = ("_in_place", "_started", "_stop", "_stream", "_text", "_ticker")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._in_place = self._stream.isatty()
        self._started = time.monotonic()
        self._text = ""
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._in_place:
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
            self._stream.write("\r\033[K")
            self._stream.flush()

    @property
    def seconds(self) -> int:
        """Whole seconds since the work began."""
        return int(time.monotonic() - self._started)

    def say(self, text: str, *, share: float | None = None) -> None:
        """What happens from now on: a step worth a line of its own where lines cannot be redrawn.

        `share` is how much of the whole is done, from 0 to 1: a bar before the text where the line can be redrawn.
        """
        self._text = text if share is None else f"{bar(share)} {text}"
        if not self._in_place:
            self._stream.write(f"Headrace: {text}\n")
            self._stream.flush()

    def detail(self, text: str) -> None:
        """A detail of the step, shown only where the line can be redrawn."""
        self._text = text

    def _tick(self) -> None:
        while not self._stop.wait(_REDRAW_SECONDS):
            if self._text:
                self._stream.write(f"\r\033[KHeadrace: {self._text} ({self.seconds} s)")
                self._stream.flush()


def bar(share: float) -> str:
    """How much is done, from 0 to 1, as a bar; it is full only when all is."""
    filled = int(min(max(share, 0.0), 1.0) * _BAR_WIDTH)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]"
