"""Which records of a topic are wanted: what the URL of the Messages tab says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

STARTS = {
    "live": "Live",
    "last": "Newest",
    "beginning": "From the beginning",
    "offset": "From an offset",
    "time": "From a time",
}
"""By the word in the URL: what people read."""
LIMIT_DEFAULT, LIMIT_MAX = 100, 1000
LIVE_BEFORE = 10
"""Records of each partition from before, with which a live view begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordQuery:
    """A question about the records of one topic."""

    topic: str
    start: str = "last"
    partition: int | None = None
    offset: int = 0
    time_ms: int | None = None
    limit: int = LIMIT_DEFAULT
    filter: str = ""

    @classmethod
    def from_url(cls, topic: str, query: Mapping[str, str]) -> Self:
        """What a URL asks for; what makes no sense is as if it were not there."""
        start = query.get("from", "last")
        return cls(
            topic=topic,
            start=start if start in STARTS else "last",
            partition=_number(query.get("partition")),
            offset=_number(query.get("offset")) or 0,
            time_ms=_moment(query.get("time")),
            limit=min(max(_number(query.get("limit")) or LIMIT_DEFAULT, 1), LIMIT_MAX),
            filter=query.get("filter", ""),
        )

    def to_url(self) -> dict[str, str | None]:
        """The parameters of the URL that asks for it; None for those that are not needed."""
        return {
            "from": None if self.start == "last" else self.start,
            "partition": None if self.partition is None else str(self.partition),
            "offset": str(self.offset) if self.start == "offset" else None,
            "time": None if self.start != "time" or self.time_ms is None else iso(self.time_ms),
            "limit": None if self.limit == LIMIT_DEFAULT else str(self.limit),
            "filter": self.filter or None,
        }

    def but(self, **changes: Any) -> Self:
        """The same question with something else."""
        return replace(self, **changes)

    @property
    def is_newest_first(self) -> bool:
        """Whether one looks from the end of the log."""
        return self.start in {"live", "last"}


def iso(ms: int) -> str:
    """A time in UTC: 2026-11-16T15:04:05.123Z."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _moment(text: str | None) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return int(text[:15])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
