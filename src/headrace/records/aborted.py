"""Which batches belong to aborted transactions, found as a read_committed consumer finds them (KIP-98)."""

from collections import deque
from collections.abc import Sequence


class AbortedProducers:
    """The producers whose transaction, at the place in the log that reading has reached, will turn out aborted."""

    __slots__ = ("_coming", "_open")

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._coming = deque(sorted(aborted, key=lambda pair: pair[1]))
        self._open: set[int] = set()

    def reach(self, offset: int) -> None:
        """Take in the transactions that began at `offset` or before."""
        while self._coming and self._coming[0][1] <= offset:
            self._open.add(self._coming.popleft()[0])

    def end(self, producer_id: int) -> None:
        """An abort marker was met: what this producer sends from here on is another transaction."""
        self._open.discard(producer_id)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._open

    def __bool__(self) -> bool:
        return bool(self._coming or self._open)
