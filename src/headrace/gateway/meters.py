"""What the gateway counts: requests, streams, records. Numbers only; who is asked for them renders them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from headrace.model.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.model.exposition import Family

SERIES_MAX = 2000
"""Routes, methods and statuses come from tables, so there are few; this is in case they do not."""


class Meters:
    """All numbers of one gateway since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """Answered requests by method, route and status."""
        self.times: dict[str, Histogram] = {}
        """How long they took, by route; streams are not among them."""
        self.in_flight = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.streams: Counter[str] = Counter()
        """Streams that are open, by kind."""
        self.streams_opened: Counter[str] = Counter()
        self.stream_bytes: Counter[str] = Counter()
        self.records_delivered = 0
        """Records that streams and consumers were given."""
        self.records_stored = 0
        """Records that the cluster took."""
        self.records_refused = 0
        """Records that it did not."""
        self.sources: list[Callable[[], Iterable[Family]]] = []
        """Others who have something to tell, asked last."""

    def answered(self, method: str, route: str, status: int, elapsed_ns: int | None) -> None:
        """A request came to its end; None if it was a stream, whose time means nothing."""
        key = (method, route, status)
        if key in self.requests or len(self.requests) < SERIES_MAX:
            self.requests[key] += 1
        if elapsed_ns is not None:
            times = self.times.get(route)
            if times is None:
                times = self.times[route] = Histogram()
            times.note(elapsed_ns)
