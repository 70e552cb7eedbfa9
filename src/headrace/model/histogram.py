"""How long things took, counted in doubling buckets: an integer or two for each, and no list to sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.exposition import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FIRST_NS = 62_500
BUCKETS = 22
"""From a sixteenth of a millisecond to two minutes; what is above is told as such."""
_PLACES = 64
"""As many as a duration has bits, so that none has to be compared with a limit."""


class Histogram:
    """Durations so far."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * _PLACES
        self.sum_ns = 0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def note(self, elapsed_ns: int) -> None:
        """One more. HOT."""
        self.counts[(elapsed_ns // _FIRST_NS).bit_length()] += 1
        self.sum_ns += elapsed_ns

    def samples(self, labels: Mapping[str, str], *, unit_ns: int) -> Iterator[Sample]:
        """As Prometheus wants it, in a unit; all of one moment, though what is read in pieces goes on counting."""
        counts, sum_ns = self.counts.copy(), self.sum_ns
        total = 0
        for place, count in enumerate(counts[:BUCKETS]):
            total += count
            yield Sample({**labels, "le": f"{(_FIRST_NS << place) / unit_ns:g}"}, total, "_bucket")
        yield Sample({**labels, "le": "+Inf"}, sum(counts), "_bucket")
        yield Sample(labels, sum_ns / unit_ns, "_sum")
        yield Sample(labels, sum(counts), "_count")
