"""What the members of a consumer group did, held against what a group that keeps its promises can have done.

Members and those who disturb them write down events with the time of one clock that all of them share. The topic's
records have dense offsets from 0, and a member that has no committed offset begins there. `check` says which promises
the events cannot all be true under:

    unprocessed   an acknowledged record that no member ever processed
    skipped       a member began behind every commit there was, or left out records while it owned the partition
    repeated      a member began before an offset whose commit had been acknowledged when it got the partition
    went-back     a member processed a record a second time while it owned the partition
    commit-back   a commit was acknowledged that was older than one acknowledged before it was even begun
    unowned       a partition had no owner for longer than allowed although nothing was disturbed any more
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from headrace.testing.history import Violation


class What(StrEnum):
    """What can happen; a member's own events first, then what is done to it and to the broker."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"
    PROCESSED = "processed"
    COMMITTING = "committing"
    COMMITTED = "committed"
    COMMIT_FAILED = "commit-failed"
    JOINED = "joined"
    LEAVING = "leaving"
    GONE = "gone"
    """The process has ended, of its own will or by a signal."""
    PRODUCED = "produced"
    BROKER_DOWN = "broker-down"
    BROKER_UP = "broker-up"
    END = "end"


DISTURBANCES = frozenset({What.JOINED, What.LEAVING, What.GONE, What.BROKER_UP})
"""After each of these the group may need its time to settle again."""


class Event(NamedTuple):
    """One thing that happened, and when."""

    at_s: float
    who: str
    what: What
    partition: int = -1
    offset: int = -1
    """Of a record: its own; of a commit: the next one to process."""


class Gap(NamedTuple):
    """A time in which a partition had no owner."""

    partition: int
    seconds: float
    until: Event


def check(events: Sequence[Event], *, settle_s: float) -> list[Violation]:
    """Every promise the events break; after a disturbance all partitions are owned again within `settle_s`."""
    ordered = sorted(events, key=lambda event: event.at_s)
    found = [violation for rule in (_unprocessed, _positions, _commits) for violation in rule(ordered)]
    return found + list(_unowned(ordered, settle_s))


def owners(events: Sequence[Event]) -> dict[int, set[str]]:
    """Who owns each partition after all that happened."""
    held: dict[int, set[str]] = defaultdict(set)
    for event in sorted(events, key=lambda event: event.at_s):
        _move(held, event)
    return {partition: members for partition, members in held.items() if members}


def _unprocessed(events: Sequence[Event]) -> Iterator[Violation]:
    processed = {(event.partition, event.offset) for event in events if event.what is What.PROCESSED}
    for event in events:
        if event.what is What.PRODUCED and (event.partition, event.offset) not in processed:
            yield Violation("unprocessed", f"{event}")


def _positions(events: Sequence[Event]) -> Iterator[Violation]:
    tried: dict[int, int] = defaultdict(int)
    acknowledged: dict[int, int] = defaultdict(int)
    floor: dict[tuple[str, int], int] = {}
    expected: dict[tuple[str, int], int] = {}
    for event in events:
        owned = event.who, event.partition
        if event.what is What.COMMITTING:
            tried[event.partition] = max(tried[event.partition], event.offset)
        elif event.what is What.COMMITTED:
            acknowledged[event.partition] = max(acknowledged[event.partition], event.offset)
        elif event.what is What.ASSIGNED:
            floor[owned] = acknowledged[event.partition]
            expected.pop(owned, None)
        elif event.what is What.PROCESSED:
            if owned in expected:
                yield from _step(event, expected[owned])
            else:
                yield from _beginning(event, floor.get(owned, 0), tried[event.partition])
            expected[owned] = event.offset + 1


def _beginning(event: Event, floor: int, ceiling: int) -> Iterator[Violation]:
    if event.offset > ceiling:
        yield Violation("skipped", f"{event} is the first, and nobody had committed beyond {ceiling}")
    if event.offset < floor:
        yield Violation("repeated", f"{event} is the first, and {floor} was committed before")


def _step(event: Event, expected: int) -> Iterator[Violation]:
    if event.offset > expected:
        yield Violation("skipped", f"{event}, {expected} was next")
    if event.offset < expected:
        yield Violation("went-back", f"{event}, {expected} was next")


def _commits(events: Sequence[Event]) -> Iterator[Violation]:
    highest: dict[int, Event] = {}
    begun: dict[tuple[str, int], Event | None] = {}
    for event in events:
        if event.what is What.COMMITTING:
            begun[event.who, event.partition] = highest.get(event.partition)
        elif event.what is What.COMMITTED:
            before = begun.get((event.who, event.partition))
            if before is not None and before.offset > event.offset:
                yield Violation("commit-back", f"{event} after {before}")
            last = highest.get(event.partition)
            if last is None or last.offset < event.offset:
                highest[event.partition] = event


def _unowned(events: Sequence[Event], settle_s: float) -> Iterator[Violation]:
    for gap in gaps(events):
        if gap.seconds > settle_s:
            yield Violation("unowned", f"partition {gap.partition} for {gap.seconds:.1f} s until {gap.until}")


def gaps(events: Sequence[Event]) -> Iterator[Gap]:
    """Every time without an owner: from its start or from the last disturbance in it, and never without a broker."""
    held: dict[int, set[str]] = defaultdict(set)
    since: dict[int, float] = {}
    down = False
    for event in sorted(events, key=lambda event: event.at_s):
        for partition in sorted(set(since) & _looked_at(event, set(since))):
            yield Gap(partition, event.at_s - since[partition], event)
        _move(held, event)
        down = event.what is not What.BROKER_UP and (down or event.what is What.BROKER_DOWN)
        since = {} if down else _open_gaps(held, since, event)


def _looked_at(event: Event, unowned: set[int]) -> set[int]:
    """The partitions whose gap ends here, or starts to count anew."""
    if event.what in DISTURBANCES or event.what in {What.END, What.BROKER_DOWN}:
        return unowned
    return {event.partition} if event.what is What.ASSIGNED else set()


def _open_gaps(held: dict[int, set[str]], since: dict[int, float], event: Event) -> dict[int, float]:
    """Which partitions have no owner, and since when that counts."""
    fresh = event.what in DISTURBANCES
    return {
        partition: event.at_s if fresh else since.get(partition, event.at_s)
        for partition, members in held.items()
        if not members
    }


def _move(held: dict[int, set[str]], event: Event) -> None:
    """Let ownership follow an event."""
    if event.what is What.ASSIGNED:
        held[event.partition].add(event.who)
    elif event.what in {What.REVOKED, What.LOST}:
        held[event.partition].discard(event.who)
    elif event.what is What.GONE:
        for members in held.values():
            members.discard(event.who)
