"""Where a stream is, as its client holds it between two connections: for every partition the offset to read next.

Two forms, both read and both written:
    compact     trucks:0=1235,1=998;alerts:0=3
    JSON        [{"topic":"trucks","partition":0,"offset":1235},...]

An offset is that of the next record, so that the id of any single event is enough to go on exactly behind it. Instead
of an offset there may be a point in time (`@1700000000000`, `"timestamp"`), which survives a move to another cluster,
or -1 for the end. A topic without partitions (`trucks`, `trucks=@1700000000000`) speaks for all of its partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

import msgspec

from headrace.client.records import TopicPartition

TEXT_MAX: Final = 256 * 1024
PLACES_MAX: Final = 20_000
_OFFSET_MAX: Final = 2**63 - 1
_PARTITION_MAX: Final = 2**31 - 1
_END: Final = -1

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_TOPIC_OF: Final = attrgetter("topic")

Key = TypeVar("Key")


class BadPosition(ValueError):
    """A text that is no position."""


class At(NamedTuple):
    """A place in a partition: an offset (-1 for the end), or the first record at or after a time."""

    offset: int = _END
    timestamp: int | None = None


class Position(NamedTuple):
    """What a client says it has: partitions one by one, and topics as a whole."""

    places: Mapping[TopicPartition, At]
    topics: Mapping[str, At]

    def at(self, place: TopicPartition) -> At | None:
        """Where to go on in a partition, if the position says so."""
        return self.places.get(place) or self.topics.get(place.topic)

    def knows(self, topic: str) -> bool:
        """Whether it speaks of a topic at all."""
        return topic in self.topics or any(place.topic == topic for place in self.places)


class _Entry(msgspec.Struct):
    """One entry of the JSON form."""

    topic: str
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


# --- written


def compact_template(places: Iterable[TopicPartition]) -> str:
    """The short form of a position in these partitions, with %d where the offsets go in the same order."""
    return ";".join(
        f"{topic}:{','.join(f'{place.partition}=%d' for place in its)}" for topic, its in groupby(places, _TOPIC_OF)
    )


def json_template(places: Iterable[TopicPartition]) -> str:
    """The form KafkaSSE has, which clients written for it read; with %d where the offsets go."""
    entries = (f'{{"topic":"{place.topic}","partition":{place.partition},"offset":%d}}' for place in places)
    return f"[{','.join(entries)}]"


# --- read


def parse_position(text: str) -> Position:
    """Either form; BadPosition says what is wrong with it."""
    if len(text) > TEXT_MAX:
        raise BadPosition(f"it is longer than {TEXT_MAX} characters")
    text = text.strip()
    if not text:
        raise BadPosition("it is empty")
    position = _from_json(text) if text.startswith(("[", "{", '"')) else _from_compact(text)
    if len(position.places) > PLACES_MAX:
        raise BadPosition(f"it names more than {PLACES_MAX} partitions")
    return position


def _from_json(text: str) -> Position:
    try:
        entries = msgspec.json.decode(text, type=list[_Entry])
    except (msgspec.DecodeError, RecursionError) as fault:
        raise BadPosition(f"it is no list of topic, partition and offset or timestamp: {fault}") from None
    places: dict[TopicPartition, At] = {}
    topics: dict[str, At] = {}
    for entry in entries:
        topic = _topic(entry.topic)
        at = _at(entry.offset, entry.timestamp)
        if entry.partition is None:
            _add(topics, topic, at)
        else:
            if not 0 <= entry.partition <= _PARTITION_MAX:
                raise BadPosition(f"{entry.partition} is no partition")
            _add(places, TopicPartition(topic, entry.partition), at)
    return Position(places, topics)


def _at(offset: int | None, timestamp: int | None) -> At:
    if offset is not None:
        if not _END <= offset <= _OFFSET_MAX:
            raise BadPosition(f"{offset} is no offset")
        return At(offset)
    if timestamp is not None and not 0 <= timestamp <= _OFFSET_MAX:
        raise BadPosition(f"{timestamp} is no timestamp")
    return At(timestamp=timestamp)


def _from_compact(text: str) -> Position:
    places: dict[TopicPartition, At] = {}
    topics: dict[str, At] = {}
    for part in text.split(";"):
        name, colon, rest = part.partition(":")
        if not colon:
            name, equals, value = part.partition("=")
            _add(topics, _topic(name), _value(value) if equals else At())
            continue
        topic = _topic(name)
        for item in rest.split(","):
            number, equals, value = item.partition("=")
            if not equals or _NUMBER.fullmatch(number) is None or int(number) > _PARTITION_MAX:
                raise BadPosition(f"'{item[:50]}' is no partition=offset")
            _add(places, TopicPartition(topic, int(number)), _value(value))
    return Position(places, topics)


def _value(text: str) -> At:
    if text == "-1":
        return At()
    number = text.removeprefix("@")
    if _NUMBER.fullmatch(number) is None or int(number) > _OFFSET_MAX:
        raise BadPosition(f"'{text[:50]}' is neither an offset nor @ and a timestamp")
    return At(timestamp=int(number)) if text.startswith("@") else At(int(number))


def _topic(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise BadPosition(f"'{name[:50]}' is no topic")
    return name


def _add(found: dict[Key, At], key: Key, at: At) -> None:
    if key in found:
        raise BadPosition(f"{key} is in it twice")
    found[key] = at
