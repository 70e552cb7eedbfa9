"""A segment's sparse map from offsets to file positions (`.index`).

An entry is the last offset of a batch, relative to the segment's base, and the position at which that batch begins;
one is made about every index.interval.bytes. Entries are kept in two arrays so that a lookup is one C-speed bisection;
the file is only a copy that spares a scan of the log, so anything odd in it means: rebuild, never fail.
"""

import sys
from array import array
from bisect import bisect_right
from operator import lt

ENTRY_BYTES = 8
RELATIVE_OFFSET_MAX = 2**31 - 1
_SWAP = sys.byteorder == "little"


class OffsetIndex:
    """Offset and position pairs of one segment, both strictly rising."""

    __slots__ = ("_base_offset", "_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    @classmethod
    def decode(cls, data: bytes, *, base_offset: int, log_bytes: int) -> "OffsetIndex | None":
        """The index in a file's bytes, or None if those cannot be one of a log of `log_bytes`."""
        if len(data) % ENTRY_BYTES:
            return None
        index = cls(base_offset)
        if data:
            numbers = array("i", data)
            if _SWAP:
                numbers.byteswap()
            offsets, positions = numbers[0::2], numbers[1::2]
            if offsets[0] < 0 or positions[0] < 0 or positions[-1] >= log_bytes:
                return None
            if not (all(map(lt, offsets, offsets[1:])) and all(map(lt, positions, positions[1:]))):
                return None
            index._offsets, index._positions = offsets, positions
        return index

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry `start` on."""
        numbers = array("i", bytes(4 * 2 * (len(self._offsets) - start)))
        numbers[0::2] = self._offsets[start:]
        numbers[1::2] = self._positions[start:]
        if _SWAP:
            numbers.byteswap()
        return numbers.tobytes()

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, offset: int, position: int) -> int:
        """Remember where the batch that ends at `offset` begins; answers how many entries there are."""
        offsets = self._offsets
        offsets.append(offset - self._base_offset)
        self._positions.append(position)
        return len(offsets)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The last entry that is not above `offset`: walking on from its position meets the batch with `offset`."""
        slot = bisect_right(self._offsets, offset - self._base_offset) - 1
        return self.entry(slot) if slot >= 0 else (self._base_offset, 0)

    def floor_position(self, position: int) -> tuple[int, int]:
        """The last entry whose batch does not begin above `position`."""
        slot = bisect_right(self._positions, position) - 1
        return self.entry(slot) if slot >= 0 else (self._base_offset, 0)

    def entry(self, slot: int) -> tuple[int, int]:
        """Offset and position of an entry; negative slots count from the end."""
        return self._offsets[slot] + self._base_offset, self._positions[slot]
