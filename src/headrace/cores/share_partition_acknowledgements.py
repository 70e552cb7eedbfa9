"""What a member of a share group says of the records it has, checked and in order."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from headrace.cores.share_partition_runs import RUNS_MAX, RecordState
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""The kinds of acknowledgement, by Kafka's numbers; a gap is an offset without a record, a renewal extends the lock."""

STATE_OF = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}

_KINDS = {*STATE_OF, RENEW}

Range = tuple[int, int, int]
"""First and last offset, and what is said of them."""


class Acknowledgement(NamedTuple):
    """What is said of consecutive records: one kind for all, or one for each."""

    first_offset: int
    last_offset: int
    kinds: tuple[int, ...]


def ranges_of(acknowledgements: Sequence[Acknowledgement]) -> list[Range]:
    """The ranges with one kind each, in order; KafkaError(INVALID_REQUEST) if they make no sense or are too many."""
    ranges: list[Range] = []
    end = -1
    for one in acknowledgements:
        _check(one, end)
        end = one.last_offset
        # One more than there may be is enough to know.
        ranges += islice(_split(one), RUNS_MAX + 1 - len(ranges))
        if len(ranges) > RUNS_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Too many acknowledgements: more than {RUNS_MAX} ranges.")
    return ranges


def _check(one: Acknowledgement, end: int) -> None:
    if one.first_offset < 0 or one.first_offset > one.last_offset or one.first_offset <= end:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The offsets of the acknowledgements are out of order.")
    count = one.last_offset - one.first_offset + 1
    if len(one.kinds) not in {1, count}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "There must be one acknowledge type for all offsets, or one each.")
    unknown = set(one.kinds) - _KINDS
    if unknown:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: {min(unknown)}")


def _split(one: Acknowledgement) -> Iterator[Range]:
    if len(one.kinds) == 1:
        yield one.first_offset, one.last_offset, one.kinds[0]
        return
    first = one.first_offset
    for kind, same in groupby(one.kinds):
        last = first + len(tuple(same)) - 1
        yield first, last, kind
        first = last + 1
