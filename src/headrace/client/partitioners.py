"""Which partition a record goes to, where the engine has no such rule or a program brings its own.

With a key the engine's `murmur2_random` gives what Java's producer gives; without one it stays with a partition for a
while (KIP-480). What is here serves `partitioner="round_robin"` and functions in kafka-python's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]

_MASK = 0xFFFFFFFF
_MULTIPLIER, _SHIFT, _SEED = 0x5BD1E995, 24, 0x9747B28C


def murmur2(key: bytes) -> int:
    """The 32-bit hash that Java's producer takes of a key, as an unsigned number."""
    length = len(key)
    mixed = (_SEED ^ length) & _MASK
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        mixed = (mixed * _MULTIPLIER & _MASK) ^ word
    if whole < length:
        mixed = (mixed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition Java's producer puts a key in."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class RoundRobin:
    """Keys by their hash; records without one in turn."""

    def __init__(self) -> None:
        self._turns = count()

    def __call__(self, key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
        """The next partition."""
        if key is not None:
            return partitions[partition_of(key, len(partitions))]
        chosen = available or partitions
        return chosen[next(self._turns) % len(chosen)]
