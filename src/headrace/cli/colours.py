"""Colours for people: on a terminal only, never where NO_COLOR is set, and never in what a program reads."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"

Rule = tuple[str, str]
"""A regular expression and the colour of what it finds."""


def wants_colour(stream: TextIO) -> bool:
    """Whether a person looks at this stream on a terminal that knows colours and has not declined them."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour, or plain where nobody would see it."""
    if not colour or not wants_colour(stream or sys.stdout):
        return text
    return f"\033[{colour}m{text}\033[0m"


class PaintedStream:
    """A stream whose lines are coloured by rules on their way out; every other property is that of the stream."""

    def __init__(self, stream: TextIO, rules: Sequence[Rule]) -> None:
        self._stream = stream
        names = [f"rule{index}" for index in range(len(rules))]
        self._pattern = re.compile(
            "|".join(f"(?P<{name}>{rule})" for name, (rule, _) in zip(names, rules, strict=True))
        )
        self._colours = dict(zip(names, (colour for _, colour in rules), strict=True))
        self._pending = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Colour whole lines; the rest waits for its end."""
        *lines, self._pending = (self._pending + text).split("\n")
        if lines:
            self._stream.write("".join(f"{self._painted(line)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Let go of a line that has no end yet: a prompt, for one."""
        if self._pending:
            self._stream.write(self._painted(self._pending))
            self._pending = ""
        self._stream.flush()

    def _painted(self, line: str) -> str:
        return self._pattern.sub(lambda found: f"\033[{self._colours[found.lastgroup or '']}m{found[0]}\033[0m", line)
