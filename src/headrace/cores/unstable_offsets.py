"""The transactions of one partition whose records a read_committed consumer may not see yet (KIP-98).

A transaction is unstable while it is open, and goes on being so until its marker lies below the high watermark: a
marker that is not safe yet may be lost, and written again with another outcome.
"""

from collections.abc import Iterable

STABLE = 2**63 - 1
"""The first unstable offset where nothing is unstable: beyond every offset there can be."""


class UnstableOffsets:
    """First offsets of the open transactions, and of those that ended above the high watermark."""

    __slots__ = ("_open", "ended", "first")

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """By producer id, and by their first offsets in order: a transaction begins at the end of the log."""
        self.ended: list[tuple[int, int]] = []
        """First offset and marker of each transaction whose marker is not known to be below the high watermark."""
        self.first = STABLE
        """What is below is decided, and safe as far as the high watermark goes."""

    def load(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Forget everything and know these open ones: first offset and producer id of each."""
        self._open = {producer_id: first_offset for first_offset, producer_id in sorted(transactions)}
        self.ended = []
        self.first = next(iter(self._open.values()), STABLE)

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A producer wrote the first batch of a transaction."""
        self._open[producer_id] = first_offset
        self.first = min(self.first, first_offset)

    def end(self, producer_id: int, last_offset: int) -> tuple[int, int] | None:
        """A marker was written: where its transaction began, and where the next open one does; None if none was."""
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return None
        self.ended.append((first_offset, last_offset))
        return first_offset, next(iter(self._open.values()), last_offset + 1)

    def advance(self, high_watermark: int) -> None:
        """Everything below is safe: transactions that ended there are over."""
        self.ended = [transaction for transaction in self.ended if transaction[1] >= high_watermark]
        first_open = next(iter(self._open.values()), STABLE)
        self.first = min((first for first, _ in self.ended), default=STABLE)
        self.first = min(self.first, first_open)
