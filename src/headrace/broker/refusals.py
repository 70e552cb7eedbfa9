"""What is refused and whoever looks after the cluster should hear of: a line in the log, with the sentence.

The same refusal is told once a minute, so that nobody who comes again and again can fill a disk with it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.model.errors import KafkaError

logger = logging.getLogger(__name__)

QUIET_MS = 60_000
"""How long the same refusal is not told again."""
REMEMBERED_MAX = 1_000
"""Refusals of which it is known when they were told last; of more than so many the oldest are forgotten."""
TOLD_AT_ONCE_MAX = 20
"""Refusals of one request that get a line each; there may be thousands."""
LINE_MAX = 500


class Refusals:
    """The refusals of one node."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._told_ms: dict[tuple[str, str, int], int] = {}

    def tell(self, event: str, subject: str, error: KafkaError, *, level: int = logging.INFO) -> None:
        """Tell of one, if that was not done lately; `subject` says who or what was refused."""
        now_ms, key = self._clock(), (event, subject, int(error.code))
        told_ms = self._told_ms.get(key)
        if told_ms is not None and 0 <= now_ms - told_ms < QUIET_MS:
            return
        self._told_ms.pop(key, None)
        self._told_ms[key] = now_ms
        if len(self._told_ms) > REMEMBERED_MAX:
            del self._told_ms[next(iter(self._told_ms))]
        logger.log(
            level, "%s %s error=%s reason=%s", event, _one_line(subject), error.code.name, _one_line(error.message)
        )

    def tell_all(self, event: str, refused: Iterable[tuple[str, KafkaError | None]]) -> None:
        """Tell of those parts of a request that were refused, of the first ones at least."""
        told = 0
        for subject, error in refused:
            if error is not None:
                self.tell(event, subject, error)
                told += 1
            if told == TOLD_AT_ONCE_MAX:
                return


def _one_line(text: str) -> str:
    """A text as it may stand in the log: names are whatever clients send."""
    return "".join(each if each.isprintable() else "?" for each in text[:LINE_MAX])
