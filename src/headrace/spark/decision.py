"""A decided batch, as it is noted: whose transactions belong to it, and what each has written.

The note must fit beside an offset (`offset.metadata.max.bytes`, 4096 unless a broker says otherwise): a version, how
many rows there are in all, and for every task its producer and a fingerprint of its rows.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.client.fault import ClientFault
from headrace.records.build import write_varint
from headrace.spark.producer_identity import NO_PRODUCER_ID

NOTE_BYTES_MAX = 4096
_VERSION = "1"
_FINGERPRINT = struct.Struct("<I")
_PIECE = 0x7F


class BadNote(ClientFault):
    """What a group's offset has beside it was not written by us."""


class TooManyTasks(ClientFault):
    """A batch has more tasks than can be noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one task has written of a batch; a task without rows has no producer."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = 0
    fingerprint: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return self.producer_id == NO_PRODUCER_ID


NOTHING = Part()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The transactions that make up a batch, by task."""

    rows: int
    parts: tuple[Part, ...]

    def part_of(self, task: int) -> Part:
        """What a task has written."""
        return self.parts[task] if task < len(self.parts) else NOTHING

    def with_part(self, task: int, part: Part) -> Decision:
        """The same with another transaction for a task."""
        return replace(self, parts=(*self.parts[:task], part, *self.parts[task + 1 :]))


def write_decision(decision: Decision) -> str:
    """A decision as text."""
    out = bytearray()
    write_varint(out, decision.rows)
    write_varint(out, len(decision.parts))
    before = 0
    for part in decision.parts:
        # Producer ids of a query's tasks are near each other: the differences take a byte or two.
        write_varint(out, part.producer_id - before)
        before = part.producer_id
        if not part.is_empty:
            write_varint(out, part.epoch)
            out += _FINGERPRINT.pack(part.fingerprint)
    text = _VERSION + base64.b85encode(out).decode()
    if len(text) > NOTE_BYTES_MAX:
        raise TooManyTasks(
            f"A batch of {len(decision.parts)} tasks cannot be noted, which exactlyOnce=true needs",
            "Write with fewer: df.coalesce(200) before writeStream.",
        )
    return text


def read_decision(text: str) -> Decision:
    """A decision from its text."""
    try:
        if not text.startswith(_VERSION):
            raise ValueError(text)
        return _Reader(base64.b85decode(text[len(_VERSION) :])).decision()
    except (ValueError, IndexError, struct.error) as error:
        raise BadNote(
            "The note of this query's last batch cannot be read", "Is its group of offsets used by something else?"
        ) from error


class _Reader:
    """Reads what `write_decision` wrote."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def decision(self) -> Decision:
        rows, count = self._number(), self._number()
        if not 0 <= count <= len(self._data):
            raise ValueError(count)
        parts: list[Part] = []
        before = 0
        for _ in range(count):
            before += self._number()
            parts.append(NOTHING if before == NO_PRODUCER_ID else self._part(before))
        return Decision(rows=rows, parts=tuple(parts))

    def _part(self, producer_id: int) -> Part:
        epoch = self._number()
        (fingerprint,) = _FINGERPRINT.unpack_from(self._data, self._at)
        self._at += _FINGERPRINT.size
        return Part(producer_id=producer_id, epoch=epoch, fingerprint=fingerprint)

    def _number(self) -> int:
        raw = shift = 0
        while True:
            piece = self._data[self._at]
            self._at += 1
            raw |= (piece & _PIECE) << shift
            if piece <= _PIECE:
                return raw >> 1 ^ -(raw & 1)
            shift += 7


def parts_of(parts: Sequence[tuple[int, Part]], *, tasks: int) -> tuple[Part, ...]:
    """Parts in the order of their tasks, empty ones where nothing was written."""
    found = dict(parts)
    return tuple(found.get(task, NOTHING) for task in range(tasks))
