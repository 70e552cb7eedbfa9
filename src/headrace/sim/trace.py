"""What happened in a run, in words: kept short for people, and whole as a fingerprint."""

from __future__ import annotations

import hashlib
from collections import deque

KEPT = 400
"""How many of the last lines are kept to be shown when a run fails."""


class Trace:
    """The lines of one run."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=KEPT)
        self._digest = hashlib.sha256()

    def add(self, now_ms: int, line: str) -> None:
        """Take down one thing that happened."""
        text = f"{now_ms:>8} {line}\n"
        self._last.append(text)
        self._digest.update(text.encode())

    @property
    def fingerprint(self) -> str:
        """Two runs with the same fingerprint went the same way, byte for byte."""
        return self._digest.hexdigest()

    def __str__(self) -> str:
        return "".join(self._last)
