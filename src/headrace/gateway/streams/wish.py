"""What a client asks of a stream, read and checked before anything is opened."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from headrace.gateway.problem import Problem, bad_request
from headrace.gateway.streams.filter import parse_filter
from headrace.gateway.streams.moment import EARLIEST, NotAMoment, parse_moment
from headrace.gateway.streams.position import BadPosition, Position, parse_position
from headrace.gateway.streams.tokens import BadFilter

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_PARTITIONS_MAX: Final = 10_000
_FILTERS_MAX: Final = 256


class StreamQuery(Struct, frozen=True, kw_only=True):
    """What may stand in a stream's query."""

    since: Annotated[
        str | None,
        Meta(
            description="Where to begin: milliseconds since 1970, a date (2026-11-16T08:30:00Z), `-5m` for five "
            "minutes ago, `earliest` or `latest` (the default)."
        ),
    ] = None
    until: Annotated[
        str | None,
        Meta(description="Where to end, written like `since`; `latest` ends with what is there now. Open if not set."),
    ] = None
    partition: Annotated[str | None, Meta(description="Only these partitions, separated by commas.")] = None
    key: Annotated[str | None, Meta(description="Only records with this key.")] = None
    filter: Annotated[
        str | None,
        Meta(description='Only records for which this is true, such as `value.speed_kmh > 90 and key == "t-1"`.'),
    ] = None
    envelope: Annotated[
        Literal["record", "value"],
        Meta(description="`record` for topic, partition, offset, timestamp, key, value and headers; `value` alone."),
    ] = "record"
    max: Annotated[Annotated[int, Meta(ge=1, le=2**53)] | None, Meta(description="End after so many records.")] = None
    group: Annotated[
        str | None,
        Meta(description="Begin where this consumer group is, and commit to it what was sent or acknowledged."),
    ] = None
    last_event_id: Annotated[
        str | None,
        Meta(description="A position to go on from, for those who cannot send the header Last-Event-ID."),
    ] = None
    ids: Annotated[
        Literal["compact", "json", "none"],
        Meta(description="The form of the positions in events: `topic:0=12,1=9`, a JSON array, or none."),
    ] = "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A stream as it is wanted."""

    topics: tuple[str, ...]
    partitions: frozenset[int] | None = None
    since: int | None = None
    until: int | None = None
    key: bytes | None = None
    passes: Callable[[Any], bool] | None = None
    envelope: str = "record"
    count_max: int | None = None
    group: str | None = None
    position: Position | None = None
    ids: str = "compact"


def read_wish(path: str, query: StreamQuery, last_event_id: str | None, *, topics_max: int, now_ms: int) -> Wish:
    """The wish behind a request; Problem if it makes no sense."""
    topics = _topics(path, topics_max)
    return Wish(
        topics=topics,
        partitions=_partitions(query.partition),
        since=_since(query.since, now_ms),
        until=_until(query.until, now_ms),
        key=None if query.key is None else query.key.encode(errors="replace"),
        passes=_filter(query.filter),
        envelope=query.envelope,
        count_max=query.max,
        group=_group(query.group),
        # A header is what a browser sends by itself, and newer than what stands in the address.
        position=_position(last_event_id or query.last_event_id or None, topics),
        ids=query.ids,
    )


def _topics(path: str, most: int) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(path.split(",")))
    for name in names:
        if _TOPIC.fullmatch(name) is None or name in {".", ".."}:
            raise Problem(400, 40002, f"'{name[:100]}' is no name of a topic; several are separated by commas.")
    if len(names) > most:
        raise bad_request(f"A stream may have {most} topics (stream.topics.max), not {len(names)}.")
    return names


def _partitions(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) > _PARTITIONS_MAX or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise bad_request(f"'{text[:100]}' are no partitions: give numbers separated by commas.")
    return frozenset(map(int, parts))


def _since(text: str | None, now_ms: int) -> int | None:
    moment = _moment("since", text, now_ms)
    if moment is not None and moment > now_ms:
        raise bad_request(f"since={str(text)[:64]} is in the future; a stream begins now at the latest.")
    return moment


def _until(text: str | None, now_ms: int) -> int | None:
    moment = _moment("until", text, now_ms)
    if moment == EARLIEST:
        raise bad_request("until=earliest would end before it begins; give a time, or latest.")
    return moment


def _moment(name: str, text: str | None, now_ms: int) -> int | None:
    try:
        return None if text is None else parse_moment(text, now_ms)
    except NotAMoment as fault:
        raise bad_request(f"{name}: {fault}.") from None


_shared_filter = functools.lru_cache(_FILTERS_MAX)(parse_filter)
"""Streams with one filter share it: what it lets pass is asked once for all of them."""


def _filter(text: str | None) -> Callable[[Any], bool] | None:
    try:
        return None if text is None else _shared_filter(text)
    except BadFilter as fault:
        raise bad_request(f"The filter cannot be read, {fault}.") from None


def _group(name: str | None) -> str | None:
    if name is not None and not 0 < len(name) <= 249:
        raise bad_request("A group has a name of 1 to 249 characters.")
    return name


def _position(text: str | None, topics: tuple[str, ...]) -> Position | None:
    if text is None:
        return None
    try:
        position = parse_position(text)
    except BadPosition as fault:
        raise bad_request(f"Last-Event-ID is no position: {fault}. Send back the id of an event, or none.") from None
    strange = {place.topic for place in position.places} | set(position.topics)
    if foreign := sorted(strange - set(topics)):
        raise bad_request(f"Last-Event-ID speaks of '{foreign[0]}', which is not in this stream.")
    return position
