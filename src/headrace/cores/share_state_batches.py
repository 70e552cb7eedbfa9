"""Runs of records in one delivery state, as a share partition's leader reports them and the log keeps them."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from headrace.model.share_state_records import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def combine(known: Sequence[StateBatch], news: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """What is known after the news, from `start_offset` on: in order, without overlaps, neighbours that agree joined.

    Of two that speak of the same record the later one is right: a share partition has one leader, which reports in
    the order in which things happened.
    """
    batches = [batch for batch in (*known, *news) if batch.last_offset >= start_offset]
    if all(one.last_offset < other.first_offset for one, other in pairwise(batches)):
        return tuple(_joined(_clipped(batches, start_offset)))
    return tuple(_joined(_topmost(batches, start_offset)))


def _clipped(batches: Sequence[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    """Batches that are in order, from `start_offset` on."""
    for batch in batches:
        yield batch if batch.first_offset >= start_offset else _cut(batch, start_offset, batch.last_offset)


def _topmost(batches: Sequence[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    """Of batches that lie upon each other the last one each, piece by piece from `start_offset` on."""
    begins = sorted((max(batch.first_offset, start_offset), place) for place, batch in enumerate(batches))
    bounds = sorted({begin for begin, _ in begins} | {batch.last_offset + 1 for batch in batches})
    upcoming = iter(begins)
    following = next(upcoming, None)
    open_places: list[int] = []
    for first, end in pairwise(bounds):
        while following is not None and following[0] <= first:
            heappush(open_places, -following[1])
            following = next(upcoming, None)
        while open_places and batches[-open_places[0]].last_offset < first:
            heappop(open_places)
        if open_places:
            yield _cut(batches[-open_places[0]], first, end - 1)


def _cut(batch: StateBatch, first_offset: int, last_offset: int) -> StateBatch:
    return StateBatch(
        first_offset=first_offset,
        last_offset=last_offset,
        delivery_state=batch.delivery_state,
        delivery_count=batch.delivery_count,
    )


def _joined(batches: Iterable[StateBatch]) -> Iterator[StateBatch]:
    last: StateBatch | None = None
    for batch in batches:
        if (
            last is not None
            and last.last_offset + 1 == batch.first_offset
            and last.delivery_state == batch.delivery_state
            and last.delivery_count == batch.delivery_count
        ):
            last = _cut(batch, last.first_offset, batch.last_offset)
            continue
        if last is not None:
            yield last
        last = batch
    if last is not None:
        yield last
