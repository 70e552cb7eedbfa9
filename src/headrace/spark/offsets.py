"""What to read next, decided from numbers alone: where to begin, how far to go, what is lost, how to split the work.

Offsets are where reading goes on: the next record's. A plan depends on nothing but where the batch begins and ends and
on the options, so that a batch that is run again falls into the same tasks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from headrace.client.fault import BadOption, ClientFault
from headrace.client.records import TopicPartition
from headrace.spark.positions import EARLIEST, LATEST, Kind, Position

RECORDS_PER_TASK = 50_000
"""A task costs some ten milliseconds; below this many records, reading them costs less than one more task would."""
_NAMED_MAX = 3

Offsets = Mapping[TopicPartition, int]


class DataLost(ClientFault):
    """Records that should have been read are gone, and failOnDataLoss says that this must not pass in silence."""


def data_lost(sentences: Sequence[str]) -> DataLost:
    """The fault that says what is gone, and how to go on."""
    more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
    return DataLost(
        f"Data is lost: {sentences[0]}{more}",
        "To go on with what is there, set failOnDataLoss=false and start again from the same checkpoint.",
    )


class Range(NamedTuple):
    """Some offsets of one partition: from `start` up to, not including, `stop`."""

    place: TopicPartition
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets; there may be fewer records."""
        return self.stop - self.start


# --- offsets in a checkpoint


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """As Spark's connector writes them, and always in one order: Spark compares the texts."""
    found: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def from_json(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The other way."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in found.items()
        for number, offset in numbers.items()
    }


def name_of(place: TopicPartition) -> str:
    """As Kafka names a partition's directory."""
    return f"{place.topic}-{place.partition}"


# --- where an option points to


def questions(position: Position, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """What the cluster has to be asked: EARLIEST, LATEST or a time for each partition that has no offset yet."""
    if position.kind in {Kind.EVERYWHERE, Kind.TIMESTAMP}:
        return dict.fromkeys(places, position.mark)
    if position.kind is Kind.GROUP:
        return {}
    _check_complete(position, set(places))
    return {place: mark for place, mark in position.marks.items() if mark < 0 or position.kind is Kind.TIMESTAMPS}


def _check_complete(position: Position, places: set[TopicPartition]) -> None:
    """The connector wants every partition named, and so do we: one that is forgotten would be read from anywhere."""
    missing = sorted(places - position.marks.keys())
    if missing:
        hint = f"Use {EARLIEST} for its earliest, {LATEST} for its latest." if position.kind is Kind.OFFSETS else ""
        raise BadOption(f"{position.option} says nothing about {_names(missing)}", hint or "Name every partition.")
    strange = sorted(position.marks.keys() - places)
    if strange:
        raise BadOption(f"{position.option} names {_names(strange)}, which is not read", "Is it there, and subscribed?")


def timed(position: Position, answers: Offsets, latest: Offsets, *, or_latest: bool) -> dict[TopicPartition, int]:
    """Answers to questions about times, where none (-1) means that no record is that young."""
    found = {}
    for place, offset in answers.items():
        if offset < 0 and not or_latest:
            when = position.mark if position.kind is Kind.TIMESTAMP else position.marks[place]
            raise BadOption(
                f"{name_of(place)} has no record at or after {position.option} {when}",
                "Choose an earlier time, or set startingOffsetsByTimestampStrategy=latest.",
            )
        found[place] = offset if offset >= 0 else latest[place]
    return found


def kept_within(
    wanted: Offsets, earliest: Offsets, latest: Offsets, option: str
) -> tuple[dict[TopicPartition, int], list[str]]:
    """Offsets that somebody named, moved into what is there; and a sentence for each that had to be moved."""
    kept, losses = {}, []
    for place, offset in wanted.items():
        kept[place] = min(max(offset, earliest[place]), latest[place])
        if kept[place] != offset:
            losses.append(f"{option} is {offset} for {name_of(place)}, which has {earliest[place]} to {latest[place]}")
    return kept, losses


# --- how far to go


def anew(start: Offsets, latest: Offsets) -> list[TopicPartition]:
    """Partitions to read from their beginning: new ones, and those that end before the place we had come to."""
    return [place for place, end in latest.items() if start.get(place, end + 1) > end]


def losses(start: Offsets, latest: Offsets, earliest: Offsets) -> list[str]:
    """What is gone since `start`, a sentence each; `earliest` is known of the partitions that are read anew."""
    found = [f"{name_of(place)} is gone; it was read up to {start[place]}" for place in sorted(start.keys() - latest)]
    for place in anew(start, latest):
        if place in start:
            found.append(f"{name_of(place)} ends at {latest[place]}, but was read up to {start[place]}")
        elif earliest[place] > 0:
            found.append(f"{name_of(place)} is new, but begins at {earliest[place]}")
    return found


def begins(start: Offsets, latest: Offsets, earliest: Offsets) -> dict[TopicPartition, int]:
    """Where each partition is read from."""
    fresh = set(anew(start, latest))
    # Retention may be past the end of a batch that is run again.
    return {place: min(earliest[place], end) if place in fresh else start[place] for place, end in latest.items()}


def limited(begin: Offsets, latest: Offsets, records_max: int | None) -> dict[TopicPartition, int]:
    """Where to stop: a share of the limit for each partition, by how much waits in it, and none starves."""
    waiting = {place: end - begin[place] for place, end in latest.items()}
    total = sum(waiting.values())
    if records_max is None or total <= records_max:
        return dict(latest)
    return {
        place: begin[place] + min(size, max(records_max * size // total, min(size, 1)))
        for place, size in waiting.items()
    }


def is_worth_waiting(
    begin: Offsets, latest: Offsets, *, records_min: int | None, waited_ms: int, wait_max_ms: int
) -> bool:
    """Whether so little has come that the next batch may wait (minOffsetsPerTrigger)."""
    if records_min is None or waited_ms >= wait_max_ms:
        return False
    return sum(end - begin[place] for place, end in latest.items()) < records_min


def capped(latest: Offsets, target: Offsets, start: Offsets) -> dict[TopicPartition, int]:
    """No further than what was there when trigger(availableNow) began; what appeared since, is for the next run."""
    return {
        place: min(end, max(target.get(place, end), start.get(place, 0)))
        for place, end in latest.items()
        if place in target or place in start
    }


# --- how to split it


def ranges(begin: Offsets, end: Offsets) -> list[Range]:
    """What there is to read, in order."""
    found = [Range(place, begin[place], end[place]) for place in sorted(end)]
    return [one for one in found if one.size > 0]


def plan(
    wanted: Sequence[Range],
    *,
    tasks_max: int | None = None,
    partitions_min: int | None = None,
    partition_records_max: int | None = None,
) -> list[tuple[Range, ...]]:
    """The tasks of a batch: few for little, one for each partition for much, and more only where they are asked for."""
    pieces = [part for one in wanted for part in _split(one, _parts(one.size, partition_records_max))]
    if partitions_min is not None:
        pieces = _at_least(pieces, partitions_min)
    count = len(pieces)
    if partitions_min is None and partition_records_max is None:
        count = min(count, -(-sum(one.size for one in pieces) // RECORDS_PER_TASK))
    if tasks_max is not None:
        count = min(count, tasks_max)
    return _grouped(pieces, count)


def _parts(size: int, records_max: int | None) -> int:
    return 1 if records_max is None else -(-size // records_max)


def _split(one: Range, parts: int) -> list[Range]:
    """Pieces of nearly the same size."""
    cuts = [one.start + one.size * number // parts for number in range(parts + 1)]
    return [Range(one.place, start, stop) for start, stop in pairwise(cuts)]


def _at_least(pieces: list[Range], count: int) -> list[Range]:
    """More pieces, by cutting whichever is cut most coarsely, as long as there is something to cut."""
    parts = [1] * len(pieces)
    coarsest = [(-one.size, index) for index, one in enumerate(pieces)]
    heapq.heapify(coarsest)
    for _ in range(count - len(pieces)):
        if not coarsest or coarsest[0][0] >= -1:
            break
        _, index = coarsest[0]
        parts[index] += 1
        heapq.heapreplace(coarsest, (-(pieces[index].size // parts[index]), index))
    return [part for one, number in zip(pieces, parts, strict=True) for part in _split(one, number)]


def _grouped(pieces: list[Range], count: int) -> list[tuple[Range, ...]]:
    """The pieces in so many groups of nearly the same number of records."""
    if count >= len(pieces):
        return [(one,) for one in pieces]
    groups: list[list[Range]] = [[] for _ in range(count)]
    lightest = [(0, number) for number in range(count)]
    for one in sorted(pieces, key=lambda piece: (-piece.size, piece)):
        weight, number = lightest[0]
        groups[number].append(one)
        heapq.heapreplace(lightest, (weight + one.size, number))
    return [tuple(sorted(group)) for group in groups if group]


def _names(places: Sequence[TopicPartition]) -> str:
    shown = ", ".join(map(name_of, places[:_NAMED_MAX]))
    more = len(places) - _NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
