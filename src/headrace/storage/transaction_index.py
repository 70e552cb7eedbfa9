"""The aborted transactions of a segment (`.txnindex`), which a read_committed consumer is told to skip (KIP-98).

    entry: version i16 = 0 · producer id i64 · first offset i64 · last offset i64 · last stable offset at the abort i64

Entries stand in the order of their markers, which lie in the segment. The file exists only where something was aborted.
Memory has them in the same bytes: there may be many, and hardly ever is one looked at.
"""

import struct

from headrace.records.control import AbortedTransaction

__all__ = ["ENTRY_BYTES", "AbortedTransaction", "TransactionIndex"]

_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size
_VERSION = 0


class TransactionIndex:
    """The aborted transactions of one segment, in order of their markers; any thread may search it."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    @classmethod
    def decode(cls, data: bytes, *, base_offset: int, end_offset: int) -> "TransactionIndex | None":
        """The index in a file's bytes, or None if those cannot be right; an `end_offset` below 0 is not known."""
        if len(data) % ENTRY_BYTES:
            return None
        last = base_offset - 1
        for version, *fields in _ENTRY.iter_unpack(data):
            transaction = AbortedTransaction._make(fields)
            if version != _VERSION or transaction.last_offset <= last or transaction.first_offset < 0:
                return None
            last = transaction.last_offset
            if transaction.first_offset >= last or 0 <= end_offset <= last:
                return None
        index = cls()
        index._data += data
        return index

    def __len__(self) -> int:
        return len(self._data) // ENTRY_BYTES

    def entry(self, slot: int) -> AbortedTransaction:
        """One transaction."""
        # Unpacked in one step of the interpreter, because the owner may append while a thread looks.
        _, *fields = _ENTRY.unpack_from(self._data, slot * ENTRY_BYTES)
        return AbortedTransaction._make(fields)

    def append(self, transaction: AbortedTransaction) -> None:
        """Add a transaction, whose marker is the last in the segment."""
        self._data += _ENTRY.pack(_VERSION, *transaction)

    def encode(self, start: int = 0) -> bytes:
        """The entries from one on as they lie in the file."""
        return bytes(self._data[start * ENTRY_BYTES :])

    def truncate(self, offset: int) -> None:
        """Forget those whose markers are at `offset` or behind it."""
        del self._data[self._first_ending_at(offset) * ENTRY_BYTES :]

    def search(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that touch [start, end), and whether no later one can: then later segments need not be asked."""
        found = []
        for slot in range(self._first_ending_at(start_offset), len(self)):
            transaction = self.entry(slot)
            if transaction.first_offset < end_offset:
                found.append(transaction)
            if transaction.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def _first_ending_at(self, offset: int) -> int:
        """The slot of the first transaction whose marker is not before `offset`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low
