"""A segment's sparse map from timestamps to offsets (`.timeindex`).

An entry says: no batch up to this offset has a timestamp above this one. Both rise from entry to entry, whatever order
the records' own timestamps have, so a lookup can only start too early, never too late. As with the offset index the
file is a copy that may be rebuilt.
"""

import struct
from array import array
from bisect import bisect_right
from operator import le, lt

ENTRY_BYTES = 12
_ENTRY = struct.Struct(">qi")


class TimeIndex:
    """Timestamp and offset pairs of one segment, both rising."""

    __slots__ = ("_base_offset", "_offsets", "_timestamps")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    @classmethod
    def decode(cls, data: bytes, *, base_offset: int) -> "TimeIndex | None":
        """The index in a file's bytes, or None if those cannot be one."""
        if len(data) % ENTRY_BYTES:
            return None
        index = cls(base_offset)
        for timestamp, offset in _ENTRY.iter_unpack(data):
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        timestamps, offsets = index._timestamps, index._offsets
        if not (all(map(lt, timestamps, timestamps[1:])) and all(map(le, offsets, offsets[1:]))):
            return None
        return None if offsets and offsets[0] < 0 else index

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry `start` on."""
        return b"".join(map(_ENTRY.pack, self._timestamps[start:], self._offsets[start:]))

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(self, timestamp: int, offset: int) -> int:
        """Remember the greatest timestamp so far and the last offset of its batch, if that is news; the new count."""
        timestamps = self._timestamps
        if timestamp > (timestamps[-1] if timestamps else -1):
            timestamps.append(timestamp)
            self._offsets.append(offset - self._base_offset)
        return len(timestamps)

    def last(self) -> tuple[int, int] | None:
        """The greatest indexed timestamp and its offset."""
        return (self._timestamps[-1], self._offsets[-1] + self._base_offset) if self._timestamps else None

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry that is not later than `timestamp`: before its offset no record is as late."""
        slot = bisect_right(self._timestamps, timestamp) - 1
        return (
            (self._timestamps[slot], self._offsets[slot] + self._base_offset) if slot >= 0 else (-1, self._base_offset)
        )
