"""The last offset of each key, in a fixed amount of memory: what the cleaner knows while it cleans.

A Python dictionary would take some 180 bytes for a key; here it is 24, as in Kafka: sixteen of a hash and eight of the
offset, in one table with linear probing. Two keys with the same hash would cost one of them its value, so the hash is
a strong one.
"""

import struct
from hashlib import blake2b

HASH_BYTES = 16
ENTRY_BYTES = HASH_BYTES + 8
_PREFIX_BYTES = 8

_OFFSET = struct.Struct(">q")
_FREE = bytes(HASH_BYTES)


class OffsetMap:
    """Key to offset; only grows, and says when it is full."""

    __slots__ = ("_capacity", "_slots", "_table", "count")

    def __init__(self, *, max_bytes: int, load_factor: float, keys_max: int) -> None:
        """A map for at most `keys_max` keys, smaller if `max_bytes` do not hold as many at `load_factor`."""
        self._slots = max(1, min(max_bytes // ENTRY_BYTES, int(keys_max / load_factor) + 1))
        self._capacity = max(1, min(int(self._slots * load_factor), keys_max))
        # A free slot must always be left, or looking for an absent key would never end.
        if self._capacity == self._slots:
            self._slots += 1
        self._table = bytearray(self._slots * ENTRY_BYTES)
        self.count = 0

    def put(self, key: bytes | bytearray | memoryview, offset: int) -> bool:
        """Note a key's newest offset; False, with nothing noted, if the key is new and there is no room."""
        digest = _digest(key)
        position, found = self._find(digest)
        if not found:
            if self.count >= self._capacity:
                return False
            self.count += 1
            self._table[position : position + HASH_BYTES] = digest
        _OFFSET.pack_into(self._table, position + HASH_BYTES, offset)
        return True

    def get(self, key: bytes | bytearray | memoryview) -> int:
        """The newest offset noted for a key, -1 if none was."""
        position, found = self._find(_digest(key))
        offset: int = _OFFSET.unpack_from(self._table, position + HASH_BYTES)[0] if found else -1
        return offset

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """Where a key is, or the free place where it would go."""
        table = self._table
        slot = int.from_bytes(digest[:_PREFIX_BYTES], "big") % self._slots
        while True:
            position = slot * ENTRY_BYTES
            there = table[position : position + HASH_BYTES]
            if there == digest:
                return position, True
            if there == _FREE:
                return position, False
            slot += 1
            if slot == self._slots:
                slot = 0


def _digest(key: bytes | bytearray | memoryview) -> bytes:
    """Never all zeros, which marks a free slot."""
    digest = blake2b(key, digest_size=HASH_BYTES).digest()
    return digest if digest != _FREE else b"\x01" * HASH_BYTES
