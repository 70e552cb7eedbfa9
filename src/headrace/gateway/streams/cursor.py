"""Where one stream is in its partitions: what it shows next and under which id. Pure: it neither reads nor writes.

A partition is either *behind*, and its stream reads it from the log, or it is *followed*, and what comes is taken from
its tail. Positions only move when something was taken, so that the id of any event names exactly what was shown up to
it; what a filter leaves out is passed over silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from headrace.client.records import TopicPartition
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.position import compact_template, json_template
from headrace.gateway.streams.tail import Tail

ID_SHORT: Final = 512
"""Ids up to so many characters stand at every event."""
ID_EVERY: Final = 100
"""Longer ones stand at one of so many, and at the last before a pause."""
_TEMPLATES: Final[dict[str, Callable[[Iterable[TopicPartition]], str]]] = {
    "compact": compact_template,
    "json": json_template,
    "none": lambda _: "",
}


class Shown(NamedTuple):
    """A record to send, and the position behind it; that may be left out."""

    event: Event
    position: str


class Cursor:
    """The positions of one stream."""

    __slots__ = (
        "_dirty",
        "_key",
        "_left",
        "_make_template",
        "_passes",
        "_template",
        "_untold",
        "behind",
        "positions",
        "stops",
    )

    def __init__(
        self,
        positions: dict[TopicPartition, int],
        *,
        key: bytes | None = None,
        passes: Callable[[Any], bool] | None = None,
        stops: dict[TopicPartition, int] | None = None,
        count_max: int | None = None,
        ids: str = "compact",
    ) -> None:
        self.positions = positions
        self.stops = stops
        """Where each partition ends; None while it is open."""
        self.behind = set(positions)
        self._dirty: set[TopicPartition] = set()
        self._key = key
        self._passes = passes
        self._left = count_max
        self._make_template = _TEMPLATES[ids]
        self._template = self._make_template(positions)
        """The position as text, but for the offsets: only these change from one id to the next."""
        self._untold = 0
        """How far the client's position may be behind ours, in records."""
        self._settle(list(positions))

    # --- what happens

    def wake(self, place: TopicPartition, base: int) -> None:
        """A followed partition got something from `base` on."""
        if place in self.behind or place not in self.positions:
            return
        if place not in self._dirty:
            # Nothing was left to take, so whatever came since was not for us.
            self.positions[place] = max(self.positions[place], base)
            self._dirty.add(place)

    def touch(self) -> None:
        """Look at all that is followed, so that the position moves over what is not shown."""
        self._dirty.update(self.positions.keys() - self.behind)

    def follow(self, place: TopicPartition) -> None:
        """A partition's tail has been reached; it is taken from there."""
        self.behind.discard(place)
        self._dirty.add(place)
        self._settle([place])

    def add(self, place: TopicPartition, offset: int) -> None:
        """One partition more; not when the end is known already."""
        if place not in self.positions and self.stops is None:
            self.positions[place] = offset
            self.behind.add(place)
            self._template = self._make_template(self.positions)

    def move(self, place: TopicPartition, offset: int) -> None:
        """Go on elsewhere."""
        self.positions[place] = offset
        self.behind.add(place)
        self._dirty.discard(place)
        self._untold += 1
        self._settle([place])

    def close_at(self, stops: dict[TopicPartition, int]) -> None:
        """The end is known now."""
        self.stops = {place: stop for place, stop in stops.items() if place in self.positions}
        self._settle(list(self.positions))

    # --- what is asked

    @property
    def is_done(self) -> str | None:
        """Why there is nothing more to show, if so: `max` or `until`."""
        if self._left == 0:
            return "max"
        if self.stops is not None and all(self.positions[place] >= stop for place, stop in self.stops.items()):
            return "until"
        return None

    @property
    def has_news(self) -> bool:
        """Whether some tail has something."""
        return bool(self._dirty)

    @property
    def text(self) -> str:
        """The position as the client gets it."""
        return self._template % tuple(self.positions.values()) if self._template else ""

    def untold(self) -> str:
        """The position, if the client does not know it yet."""
        if not self._untold:
            return ""
        self._untold = 0
        return self.text

    # --- taking

    def take(self, tail_of: Callable[[TopicPartition], Tail | None], bytes_max: int) -> list[Shown]:
        """What the tails have for us; a partition whose tail has gone on without us is behind then."""
        shown: list[Shown] = []
        for place in list(self._dirty):
            if bytes_max <= 0 or self._left == 0:
                break
            self._dirty.discard(place)
            tail = tail_of(place)
            taken = None if tail is None else tail.take(self.positions[place], bytes_max, self._key)
            if tail is None or taken is None:
                self.behind.add(place)
                continue
            if taken.position < tail.end:
                self._dirty.add(place)
            if taken.position > self.positions[place]:
                shown += self.show(place, taken.events, taken.position)
                bytes_max -= taken.size
        return self._with_last_id(shown)

    def read(self, place: TopicPartition, events: Iterable[Event], position: int) -> list[Shown]:
        """What the stream read for itself."""
        return self._with_last_id(self.show(place, events, position))

    def show(self, place: TopicPartition, events: Iterable[Event], position: int) -> list[Shown]:
        """The records to send of those that lie up to `position`, which is where we are then."""
        if self._left == 0:
            return []  # read before `max` was reached: the position stays, so that the next stream shows it
        stop = None if self.stops is None else self.stops.get(place, 0)
        key, passes = self._key, self._passes
        shown: list[Shown] = []
        for event in events:
            if stop is not None and event.offset >= stop:
                break
            if (key is not None and event.record.key != key) or (passes is not None and not passes(event)):
                continue
            self.positions[place] = event.offset + 1
            shown.append(Shown(event, self._next_id()))
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    return shown
        target = position if stop is None else max(min(position, stop), self.positions[place])
        if target > self.positions[place]:
            self.positions[place] = target
            self._untold += 1
        if stop is not None:
            self._settle([place])
        return shown

    def _next_id(self) -> str:
        self._untold += 1
        # Text that is long is not even made for those that go without.
        if len(self.positions) * 4 > ID_SHORT and self._untold % ID_EVERY:
            return ""
        text = self.text
        if len(text) > ID_SHORT and self._untold % ID_EVERY:
            return ""
        self._untold = 0
        return text

    def _with_last_id(self, shown: list[Shown]) -> list[Shown]:
        if shown and not shown[-1].position:
            self._untold = 0
            shown[-1] = Shown(shown[-1].event, self.text)
        return shown

    def _settle(self, places: Iterable[TopicPartition]) -> None:
        """A partition that has reached its end is neither behind nor followed."""
        if self.stops is None:
            return
        for place in places:
            if self.positions[place] >= self.stops.get(place, 0):
                self.behind.discard(place)
                self._dirty.discard(place)
