"""Records as they come out of a cluster: which partitions, from where, and when it is enough.

Without a wish for particular records a consumer joins a group, as Kafka's does, and its partitions are the group's
business. With one (--partition, --last, --since, --until, --exit-at-end) it reads the partitions by hand, joins nothing
and knows where each of them ends.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.console_consumer import BY_HAND, start_offset, time_of
from headrace.cli.librdkafka import engine
from headrace.cli.session import Failure
from headrace.cli.topic_lookup import look_up
from headrace.cores.metadata import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cli.interruption import Interruption
    from headrace.cli.librdkafka import Complaints
    from headrace.cli.record_format import Shown
    from headrace.cli.record_printer import Printer
    from headrace.cli.session import Session
    from headrace.cli.tool import Values

Place = tuple[str, int]

POLL_S = 0.1
BATCH = 5_000
ASK_S = 30.0
LOOK_AGAIN_S = 5.0
"""How often topics that match --include are looked for."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What to read."""

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    by_hand: bool = False
    places: tuple[Place, ...] = ()
    start: str = "latest"
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    exits_at_end: bool = False
    limit: int | None = None
    timeout_ms: int | None = None


async def open_feed(session: Session) -> Plan:
    """Ask the cluster for the topics that are wanted; Failure where a partition is not there."""
    values = session.values
    include = values.get("include")
    pattern = None if include is None else include_pattern(include)
    limit, timeout_ms = values.number("max-messages"), values.number("timeout-ms")
    found = await _partition_counts(session, pattern)
    return Plan(
        topics=tuple(found),
        pattern=pattern,
        by_hand=any(values.has(name) for name in BY_HAND) or (values.has("exit-at-end") and not values.has("group")),
        places=_places(values, found),
        start=_start(values),
        last=values.number("last"),
        since_ms=time_of(values, "since"),
        until_ms=time_of(values, "until"),
        exits_at_end=values.has("exit-at-end"),
        limit=limit if limit is not None and limit >= 0 else None,
        timeout_ms=timeout_ms if timeout_ms is not None and timeout_ms >= 0 else None,
    )


async def _partition_counts(session: Session, pattern: re.Pattern[str] | None) -> dict[str, int]:
    """The topics that are wanted, each with the number of its partitions."""
    if pattern is not None:
        with session.waiting():
            metadata = await session.cluster.metadata()
        found = {topic.name: len(topic.partitions) for topic in metadata.topics if topic.name and not topic.error_code}
        return {name: found[name] for name in matching(pattern, found)}
    topic = session.values.require("topic")
    count = await look_up(session, topic)
    if not count:
        print(f"The topic '{topic}' was not there yet; waiting for records.", file=sys.stderr)
    return {topic: count or 1}


def _places(values: Values, counts: dict[str, int]) -> tuple[Place, ...]:
    """All partitions of the topics, or the one that was named."""
    places = tuple((topic, index) for topic, count in counts.items() for index in range(count))
    chosen = values.number("partition")
    if chosen is None:
        return places
    place = (values.require("topic"), chosen)
    if place not in places:
        raise Failure(
            f"The topic '{place[0]}' has no partition {chosen}", remedy=f"It has {len(places)}, counted from 0."
        )
    return (place,)


def _start(values: Values) -> str:
    """Where to begin; who asks for an end and names no beginning wants everything up to it."""
    has_beginning = any(values.has(name) for name in ("offset", "last", "since", "group"))
    if not has_beginning and (values.has("exit-at-end") or values.has("until")):
        return "earliest"
    return start_offset(values)


def include_pattern(text: str) -> re.Pattern[str]:
    """The topics of --include; Failure where it is no regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise Failure(f"'{text}' is not a regular expression: {error}", remedy="Check --include.") from None


def matching(pattern: re.Pattern[str], names: Iterable[str | None]) -> list[str]:
    """The topics that match as a whole; Kafka's own are not meant."""
    return sorted(name for name in names if name and pattern.fullmatch(name) and name not in INTERNAL_TOPICS)


class Feed:
    """A consumer at work."""

    def __init__(self, consumer: Any, plan: Plan, complaints: Complaints, interruption: Interruption) -> None:
        self._consumer = consumer
        self._plan = plan
        self._complaints = complaints
        self._interruption = interruption
        self._open: set[Place] | None = None
        """Partitions that have not come to their end; None while that is not known."""
        self._ends: dict[Place, int] = {}
        """Where a partition ends by order (--until); the record at that offset is not wanted."""
        self._told: set[str] = set()
        self._looked = time.monotonic()

    def run(self, printer: Printer) -> None:
        """Print records until it is enough."""
        plan = self._plan
        if plan.by_hand:
            self._assign()
        else:
            self._subscribe(plan.topics)
        if plan.last is not None:
            self._print_last(printer, plan.last)
            if plan.exits_at_end:
                return
        quiet_since = time.monotonic()
        while not self._is_enough(printer):
            left = None if plan.limit is None else plan.limit - printer.count
            records = self._take(left)
            if records:
                printer.print(records)
                quiet_since = time.monotonic()
            elif plan.timeout_ms is not None and (time.monotonic() - quiet_since) * 1000 > plan.timeout_ms:
                print(f"No message for {plan.timeout_ms} ms; ending as --timeout-ms asks.", file=sys.stderr)
                return
            self._look_again()

    def _is_enough(self, printer: Printer) -> bool:
        plan = self._plan
        if self._interruption or self._complaints.fatal or not printer.is_heard:
            return True
        if plan.limit is not None and printer.count >= plan.limit:
            return True
        return self._open is not None and not self._open and self._has_end()

    def _has_end(self) -> bool:
        plan = self._plan
        if plan.exits_at_end:
            return True
        return plan.until_ms is not None and time.time() * 1000 >= plan.until_ms

    # --- partitions

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        if topics:
            self._consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _: Any, partitions: list[Any]) -> None:
        self._open = (self._open or set()) | {(place.topic, place.partition) for place in partitions}

    def _revoked(self, _: Any, partitions: list[Any]) -> None:
        self._open = (self._open or set()) - {(place.topic, place.partition) for place in partitions}

    def _assign(self) -> None:
        plan, kafka = self._plan, engine()
        starts = self._starts()
        if plan.until_ms is not None:
            found = self._offsets_at(plan.until_ms)
            self._ends = {place: offset for place, offset in found.items() if offset >= 0}
        self._open = {place for place in plan.places if self._ends.get(place, 1) > 0}
        self._consumer.assign([kafka.TopicPartition(*place, starts[place]) for place in plan.places])

    def _starts(self) -> dict[Place, int]:
        plan, kafka = self._plan, engine()
        if plan.since_ms is not None:
            found = self._offsets_at(plan.since_ms)
            return {place: offset if offset >= 0 else kafka.OFFSET_END for place, offset in found.items()}
        if plan.last is not None:
            return {place: max(low, high - plan.last) for place, (low, high) in self._bounds().items()}
        named = {"earliest": kafka.OFFSET_BEGINNING, "latest": kafka.OFFSET_END}
        start = named.get(plan.start)
        return dict.fromkeys(plan.places, int(plan.start) if start is None else start)

    def _offsets_at(self, timestamp_ms: int) -> dict[Place, int]:
        kafka = engine()
        asked = [kafka.TopicPartition(*place, timestamp_ms) for place in self._plan.places]
        found = self._consumer.offsets_for_times(asked, timeout=ASK_S)
        return {(place.topic, place.partition): place.offset for place in found}

    def _bounds(self) -> dict[Place, tuple[int, int]]:
        kafka = engine()
        return {
            place: self._consumer.get_watermark_offsets(kafka.TopicPartition(*place), timeout=ASK_S)
            for place in self._plan.places
        }

    def _print_last(self, printer: Printer, count: int) -> None:
        """Print the last records of all partitions together, in the order of their timestamps."""
        found: list[Shown] = []
        while self._open and not self._interruption:
            found += self._take(None)
        found.sort(key=lambda record: (record.timestamp()[1], record.partition(), record.offset()))
        chosen = found[len(found) - count :] if count < len(found) else found
        limit = self._plan.limit
        printer.print(chosen if limit is None else chosen[:limit])

    def _look_again(self) -> None:
        """Notice topics that have come to match --include."""
        plan = self._plan
        if plan.pattern is None or plan.by_hand or time.monotonic() - self._looked < LOOK_AGAIN_S:
            return
        self._looked = time.monotonic()
        topics = tuple(matching(plan.pattern, self._consumer.list_topics(timeout=ASK_S).topics))
        if topics != plan.topics:
            plan.topics = topics
            self._subscribe(topics)

    # --- records

    def _take(self, limit: int | None) -> list[Shown]:
        """The next records, at most so many; waits a moment where there are none."""
        if not self._plan.by_hand and not self._plan.topics:
            time.sleep(POLL_S)
            return []
        first = self._consumer.poll(POLL_S)
        if first is None:
            return []
        more = BATCH if limit is None else min(limit, BATCH)
        messages = [first, *(self._consumer.consume(more - 1, 0) if more > 1 else ())]
        if any(message.error() is not None for message in messages):
            messages = [message for message in messages if not self._is_event(message)]
        if self._ends:
            messages = [message for message in messages if self._is_wanted(message)]
        return messages

    def _is_event(self, message: Any) -> bool:
        """Whether it is not a record but a word about a partition."""
        error = message.error()
        if error is None:
            return False
        if error.code() == engine().KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public names begin so
            if self._open is not None:
                self._open.discard((message.topic(), message.partition()))
        elif error.str() not in self._told:
            self._told.add(error.str())
            print(error.str(), file=sys.stderr)
        return True

    def _is_wanted(self, message: Any) -> bool:
        """Whether a record lies before the end of its partition; the first that does not closes it."""
        place = (message.topic(), message.partition())
        end = self._ends.get(place)
        if end is None or message.offset() < end:
            return True
        if self._open is not None:
            self._open.discard(place)
        return False
