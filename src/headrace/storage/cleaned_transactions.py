"""What the cleaner knows of transactions while it walks a log from its start: which batches were aborted, and which
markers still end something.

A marker stays as long as a batch of its transaction is met, if only an emptied one: without an abort marker and its
index entry a reader would take what is left for committed. A marker of which nothing else is left goes with the delete
horizon, like a tombstone, because a reader may be in the midst of its transaction.
"""

from bisect import bisect_left
from collections.abc import Iterable

from headrace.records.batch import BatchHeader
from headrace.records.control import AbortedTransaction, read_end_marker


class CleanedTransactions:
    """One walk over a log's batches in order."""

    __slots__ = ("_aborted", "_committed", "_met", "retained")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Needs every aborted transaction that touches what is walked over."""
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for transaction in sorted(aborted, key=lambda transaction: transaction.last_offset):
            self._aborted.setdefault(transaction.producer_id, []).append(transaction)
        self._met: set[AbortedTransaction] = set()
        self._committed: set[int] = set()
        """Producers of whom a batch was met since their last marker."""
        self.retained: list[AbortedTransaction] = []
        """Aborted transactions whose markers stay, for the new segment's index; whoever writes that empties this."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Take note of a data batch: whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        transaction = self._find(header)
        if transaction is not None and transaction.first_offset <= header.base_offset:
            self._met.add(transaction)
            return True
        self._committed.add(header.producer_id)
        return False

    def may_go(self, header: BatchHeader, batch: memoryview) -> bool:
        """Take note of a control batch: whether nothing of its transaction is left; CorruptBatch if it is harmed."""
        marker = read_end_marker(batch, header)
        if marker is None:
            # Emptied by another cleaner, or not about a transaction.
            return not header.record_count
        if marker.committed:
            was_met = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not was_met
        transaction = self._find(header)
        if transaction is None or transaction not in self._met:
            return True
        self._met.discard(transaction)
        self.retained.append(transaction)
        return False

    def _find(self, header: BatchHeader) -> AbortedTransaction | None:
        """The producer's first aborted transaction that does not end before a batch."""
        ended = self._aborted.get(header.producer_id)
        if ended is None:
            return None
        slot = bisect_left(ended, header.base_offset, key=lambda transaction: transaction.last_offset)
        return ended[slot] if slot < len(ended) else None
