"""The last piece of one partition, kept for all who follow it: what they take from it they do not read themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from headrace.gateway.streams.event import Event


class Taken(NamedTuple):
    """What a follower gets."""

    events: Sequence[Event]
    position: int
    """Where it is then."""
    size: int
    """Of the events together."""


class _Piece(NamedTuple):
    """What one read brought."""

    base: int
    events: list[Event]
    position: int
    size: int
    at_s: float


class Tail:
    """All records from `start` up to `end`, without a gap.

    Who stands at an offset in between gets exactly what comes from there on; who stands before `start` has to read for
    itself. Offsets that show nothing (markers of transactions) lie within.
    """

    __slots__ = ("_by_key", "_pieces", "_size", "_size_max", "end", "start")

    def __init__(self, offset: int, bytes_max: int) -> None:
        self.start = offset
        self.end = offset
        self._pieces: deque[_Piece] = deque()
        self._by_key: dict[bytes | None, deque[Event]] = {}
        self._size = 0
        self._size_max = bytes_max

    def add(self, events: list[Event], position: int, now_s: float) -> None:
        """What was read from `end` on, up to `position`."""
        assert position >= self.end
        if position == self.end:
            return
        size = sum(event.size for event in events)
        self._pieces.append(_Piece(self.end, events, position, size, now_s))
        for event in events:
            self._by_key.setdefault(event.record.key, deque()).append(event)
        self._size += size
        self.end = position
        # The newest piece stays, however large: somebody is about to take it.
        while self._size > self._size_max and len(self._pieces) > 1:
            self._drop()

    def expire(self, before_s: float) -> None:
        """Let go of what came before a time: whoever did not take it until now reads it from the log."""
        while self._pieces and self._pieces[0].at_s < before_s:
            self._drop()

    def _drop(self) -> None:
        piece = self._pieces.popleft()
        self._size -= piece.size
        self.start = piece.position
        for event in piece.events:
            same = self._by_key[event.record.key]
            same.popleft()
            if not same:
                del self._by_key[event.record.key]

    def take(self, offset: int, bytes_max: int, key: bytes | None = None) -> Taken | None:
        """What a follower at `offset` has not got yet, of one key if it wants no other; None if that lies before.

        At least one record, if there is any, however large.
        """
        if offset < self.start:
            return None
        if offset >= self.end:
            return Taken((), offset, 0)
        found: list[Event] = []
        size = 0
        for event in self._from(offset) if key is None else self._of(key, offset):
            if found and size + event.size > bytes_max:
                return Taken(found, event.offset, size)
            found.append(event)
            size += event.size
        return Taken(found, self.end, size)

    def _of(self, key: bytes, offset: int) -> list[Event]:
        return [event for event in self._by_key.get(key, ()) if event.offset >= offset]

    def _from(self, offset: int) -> list[Event]:
        # Most followers want the newest piece only.
        newest = self._pieces[-1]
        if newest.base <= offset:
            return newest.events if newest.base == offset else [one for one in newest.events if one.offset >= offset]
        return [
            event
            for piece in self._pieces
            if piece.position > offset
            for event in piece.events
            if event.offset >= offset
        ]
