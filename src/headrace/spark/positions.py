"""Where a read begins and ends, as the options say it: a word, offsets or points in time; and which topics it reads.

The forms are those of Spark's Kafka connector: `earliest`, `latest`, `{"topic":{"0":23,"1":-2}}`, milliseconds since
1970 for all partitions, or for each. Ours adds `group`: where a consumer group stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headrace.client.fault import BadOption
from headrace.client.records import TopicPartition

EARLIEST, LATEST = -2, -1
OFFSET_MAX = 2**63 - 1
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_EXAMPLE = '{"topic":{"0":23,"1":-2}}'


class Kind(Enum):
    """What a position is made of."""

    EVERYWHERE = "one mark for all partitions"
    OFFSETS = "an offset or mark for each partition"
    TIMESTAMP = "one point in time for all partitions"
    TIMESTAMPS = "a point in time for each partition"
    GROUP = "where a consumer group stands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in every partition, and the option that named it."""

    option: str
    kind: Kind
    mark: int = 0
    """EARLIEST or LATEST of EVERYWHERE, the milliseconds of TIMESTAMP."""
    marks: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_fleeting(self) -> bool:
        """Whether the same words may mean another place a moment later, because they mean the end of a log."""
        if self.kind is Kind.EVERYWHERE:
            return self.mark == LATEST
        if self.kind is Kind.OFFSETS:
            return LATEST in self.marks.values()
        # A time after the last record may be read as the end.
        return self.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Which topics are read: these, those whose name matches, or just some partitions."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics by name, or None if all have to be looked at."""
        if self.pattern:
            return None
        return self.names or tuple(dict.fromkeys(place.topic for place in self.assigned))

    def wants(self, place: TopicPartition) -> bool:
        """Whether this partition is read."""
        if self.assigned:
            return place in self.assigned
        if self.pattern:
            return re.fullmatch(self.pattern, place.topic) is not None
        return place.topic in self.names


def everywhere(option: str, mark: int) -> Position:
    """The beginning or the end of every partition."""
    return Position(option=option, kind=Kind.EVERYWHERE, mark=mark)


def parse_offsets(option: str, text: str) -> Position:
    """`earliest`, `latest`, `group`, or offsets as JSON."""
    word = text.strip().lower()
    if word in _WORDS:
        return everywhere(option, _WORDS[word])
    if word == "group":
        return Position(option=option, kind=Kind.GROUP)
    return Position(option=option, kind=Kind.OFFSETS, marks=_marks(option, text, lowest=EARLIEST))


def parse_timestamp(option: str, text: str) -> Position:
    """One point in time, in milliseconds since 1970."""
    if not text.strip().isdecimal():
        raise BadOption(f"{option}={text} is not a point in time", "Give milliseconds since 1970.")
    return Position(option=option, kind=Kind.TIMESTAMP, mark=int(text))


def parse_timestamps(option: str, text: str) -> Position:
    """A point in time for each partition, as JSON."""
    return Position(option=option, kind=Kind.TIMESTAMPS, marks=_marks(option, text, lowest=0))


def parse_assignment(option: str, text: str) -> Subscription:
    """Partitions as the connector's JSON: `{"topic":[0,1]}`."""
    remedy = 'Write {"topic":[0,1]}.'
    found = _json(option, text, remedy)
    places = []
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not all(_is_number(one) and one >= 0 for one in numbers):
            raise BadOption(f"{option} does not list partition numbers for topic '{topic}'", remedy)
        places += [TopicPartition(topic, number) for number in numbers]
    if not places:
        raise BadOption(f"{option} names no partition", remedy)
    return Subscription(assigned=tuple(dict.fromkeys(places)))


def parse_pattern(option: str, text: str) -> Subscription:
    """A regular expression for whole topic names."""
    try:
        re.compile(text)
    except re.error as error:
        raise BadOption(
            f"{option}={text} is no regular expression: {error}", "Write, for instance, trucks_.*"
        ) from None
    if not text:
        raise BadOption(f"{option} is empty", "Write, for instance, trucks_.*")
    return Subscription(pattern=text)


def parse_names(option: str, text: str) -> Subscription:
    """Topics by name, with commas between them."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadOption(f"{option} names no topic", "Name at least one; several with commas between them.")
    return Subscription(names=names)


def _marks(option: str, text: str, *, lowest: int) -> dict[TopicPartition, int]:
    remedy = f"Write {_EXAMPLE}" + (": -2 is the earliest, -1 the latest." if lowest < 0 else ", in milliseconds.")
    marks: dict[TopicPartition, int] = {}
    for topic, numbers in _json(option, text, remedy).items():
        if not isinstance(numbers, dict):
            raise BadOption(f"{option} does not give topic '{topic}' its partitions", remedy)
        for number, mark in numbers.items():
            if not number.isdecimal() or not _is_number(mark) or not lowest <= mark <= OFFSET_MAX:
                raise BadOption(f"{option} cannot have {json.dumps(mark)} for '{topic}' partition {number}", remedy)
            marks[TopicPartition(topic, int(number))] = mark
    return marks


def _json(option: str, text: str, remedy: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadOption(f"{option} is no JSON: {error}", remedy) from None
    if not isinstance(found, dict):
        raise BadOption(f"{option} is no JSON object", remedy)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
