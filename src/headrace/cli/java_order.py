"""The order in which Java's HashMap hands out its keys, which is the order Kafka's tools print many things in.

Nobody chose that order, but it is what a script or a comparison with Kafka's tool sees. It follows from the hash of
the strings and from how large the table has grown; keys that share a bucket come in the order they were put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLE_FIRST = 16
_INT_BITS = 32
Key = TypeVar("Key")


def hash_order(names: Iterable[str], *, table: int = _TABLE_FIRST) -> list[str]:
    """The names as a HashMap that began with `table` buckets would list them."""
    return [name for _, name in bucket_order([(string_hash(name), name) for name in dict.fromkeys(names)], table=table)]


def partition_order(places: Iterable[tuple[str, int]], *, table: int = _TABLE_FIRST) -> list[tuple[str, int]]:
    """Topics with partitions as a HashMap of Kafka's TopicPartition would list them."""
    hashed = [(_partition_hash(topic, index), (topic, index)) for topic, index in dict.fromkeys(places)]
    return [place for _, place in bucket_order(hashed, table=table)]


def result_order(places: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Partitions as the admin client's results list them: copied from a HashMap into one made to their number."""
    return partition_order(partition_order(places), table=1)


def bucket_order(hashed: list[tuple[int, Key]], *, table: int = _TABLE_FIRST) -> list[tuple[int, Key]]:
    """Distinct keys with their hashes in bucket order; the table doubles when it is three quarters full."""
    size = 1
    while size < table or 4 * len(hashed) > 3 * size:
        size *= 2
    return sorted(hashed, key=lambda pair: (pair[0] ^ pair[0] >> 16) & (size - 1))


def string_hash(text: str) -> int:
    """Java's String.hashCode, as an unsigned number; it walks UTF-16, not characters."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) % (1 << _INT_BITS)
    return value


def _partition_hash(topic: str, index: int) -> int:
    """Kafka's TopicPartition.hashCode."""
    return int((31 * (31 + index) + string_hash(topic)) % (1 << _INT_BITS))
