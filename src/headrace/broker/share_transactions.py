"""Which batches of a read belong to aborted transactions, for share groups that read only what was committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.records.batch import split_batches
from headrace.records.control import read_end_marker

if TYPE_CHECKING:
    from headrace.storage.log import Log


def aborted_extents(log: Log, view: memoryview, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
    """First and last offsets of the batches in `view` that must not be seen, in order.

    Control batches are none of them: a consumer passes over their offsets by itself.
    """
    pending = sorted(log.aborted_transactions(start_offset, end_offset), key=lambda one: one.first_offset, reverse=True)
    if not pending:
        return []
    aborted: set[int] = set()
    extents: list[tuple[int, int]] = []
    for position, header in split_batches(view):
        while pending and pending[-1].first_offset <= header.last_offset:
            aborted.add(pending.pop().producer_id)
        if header.is_control:
            marker = read_end_marker(view[position : position + header.size], header)
            if marker is not None and not marker.committed:
                aborted.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborted:
            extents.append((header.base_offset, header.last_offset))
    return extents
