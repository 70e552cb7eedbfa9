"""Where a run shows itself: a table that is drawn again in place, lines in a log, or JSON for programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

from headrace.pipeline.progress import QueryProgress
from headrace.pipeline.progress_line import line, table

LINE_EVERY_MS = 10_000
"""How often a query has a line of its own where no cursor can go back."""


class Display(Protocol):
    """What a runner tells."""

    def say(self, text: str) -> None:
        """Something happened."""

    def show(self, text: str) -> None:
        """Rows of a console sink."""

    def progress(self, new: Sequence[QueryProgress], newest: Sequence[QueryProgress]) -> None:
        """Batches that were done since, and how every query stands."""

    def end(self, document: dict[str, Any]) -> None:
        """The run is over."""


class TerminalDisplay:
    """A table at the bottom of the terminal; messages go above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn: list[str] = []

    def say(self, text: str) -> None:
        """Write above the table."""
        self._draw([], above=text)

    show = say

    def progress(self, new: Sequence[QueryProgress], newest: Sequence[QueryProgress]) -> None:
        """Draw the table again."""
        if newest:
            self._draw(table(list(newest)))

    def end(self, document: dict[str, Any]) -> None:
        """Leave the last table standing."""
        self._drawn = []

    def _draw(self, lines: list[str], above: str = "") -> None:
        width = shutil.get_terminal_size().columns
        shown = lines or self._drawn
        back = f"\033[{len(self._drawn)}A" if self._drawn else ""
        text = "".join(
            f"\033[K{one}\n" for one in [*(above.splitlines() if above else ()), *(s[:width] for s in shown)]
        )
        self._stream.write(("\r" + back if back else "") + text)
        self._stream.flush()
        self._drawn = shown


class LineDisplay:
    """A line per query now and then, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._told_ms: dict[str, int] = {}
        self._newest: dict[str, QueryProgress] = {}
        self._told: dict[str, QueryProgress] = {}

    def say(self, text: str) -> None:
        """One line."""
        print(text, file=self._stream, flush=True)

    show = say

    def progress(self, new: Sequence[QueryProgress], newest: Sequence[QueryProgress]) -> None:
        """A line for each query that did something, not more often than every ten seconds."""
        for one in new:
            self._newest[one.query] = one
            if one.rows and one.time_ms - self._told_ms.get(one.query, -LINE_EVERY_MS) >= LINE_EVERY_MS:
                self._tell(one)

    def end(self, document: dict[str, Any]) -> None:
        """How every query ended, where that was not said yet."""
        for query, one in self._newest.items():
            if self._told.get(query) != one:
                self._tell(one)

    def _tell(self, one: QueryProgress) -> None:
        self._told_ms[one.query] = one.time_ms
        self._told[one.query] = one
        self.say(line(one))


class JsonDisplay:
    """A JSON document per line, for programs; rows of console sinks go to the error stream."""

    def __init__(self, stream: TextIO, rows: TextIO) -> None:
        self._stream = stream
        self._rows = rows

    def say(self, text: str) -> None:
        """A message."""
        self._write({"event": "message", "text": text})

    def show(self, text: str) -> None:
        """Rows are for people."""
        print(text, file=self._rows, flush=True)

    def progress(self, new: Sequence[QueryProgress], newest: Sequence[QueryProgress]) -> None:
        """Every batch, none left out."""
        for one in new:
            self._write({"event": "progress", **one.document()})

    def end(self, document: dict[str, Any]) -> None:
        """The state the run ended in."""
        self._write({"event": "end", **document})

    def _write(self, document: dict[str, Any]) -> None:
        print(json.dumps(document), file=self._stream, flush=True)


def display_for(stream: TextIO, rows: TextIO, *, is_json: bool) -> Display:
    """The display that fits where the output goes."""
    if is_json:
        return JsonDisplay(stream, rows)
    return TerminalDisplay(stream) if stream.isatty() else LineDisplay(stream)
