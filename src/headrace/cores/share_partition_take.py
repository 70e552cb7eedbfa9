"""How many records one fetch of a share group takes, and in which portions it is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CAREFUL_FIRST = 2
"""Records are handed out as freely as ever until they have come back so often."""

Extent = tuple[int, int]
"""The first and the last offset of a batch of the log."""


class Acquired(NamedTuple):
    """Records that a member has now, and for the how-manieth time they are out."""

    first_offset: int
    last_offset: int
    delivery_count: int


def end_of_take(fetched: Sequence[Extent], first: int, count: int, *, strict: bool) -> int:
    """The last offset of `count` records from `first` on; unless `strict`, up to the end of the batch it lies in."""
    end = first + count - 1
    if not strict:
        for base, last in fetched:
            if base <= end <= last:
                return last
    return end


def careful_portion(delivery_count: int, record_count: int, deliveries_max: int) -> int | None:
    """How many of records that came back are handed out at once; None: as many as wanted.

    One bad record may take down whoever gets it, and all others with it. So what has come back from half of its
    deliveries is handed out in ever smaller portions, and for its last delivery each record alone.
    """
    if delivery_count >= deliveries_max:
        return None
    if deliveries_max > CAREFUL_FIRST and delivery_count == deliveries_max - 1:
        return 1
    careful_from = max(CAREFUL_FIRST, -(-deliveries_max // 2))
    if delivery_count < careful_from:
        return None
    return max(record_count >> (delivery_count - careful_from + 1), 1)


def split_by_size(acquired: Sequence[Acquired], fetched: Sequence[Extent], size: int) -> list[Acquired]:
    """The same records in portions of at least `size`, cut only where a batch of the log ends."""
    return [portion for one in acquired for portion in _portions(one, fetched, size)]


def _portions(one: Acquired, fetched: Sequence[Extent], size: int) -> Iterator[Acquired]:
    first = one.first_offset
    if size > 0 and one.last_offset - first + 1 > size:
        for _, last in fetched:
            if last >= one.last_offset:
                break
            if last - first + 1 >= size:
                yield Acquired(first, last, one.delivery_count)
                first = last + 1
    yield Acquired(first, one.last_offset, one.delivery_count)
