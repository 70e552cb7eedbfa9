"""What consumers on the classic protocol tell each other through the coordinator, as bytes.

A consumer joins with a subscription and is given an assignment; classic coordinators pass both on unread.
A group that members of both protocols share needs the coordinator to read the one and write the other (KIP-848).
Both begin with a version; later versions only add fields, so one that is not known yet is read as the last one known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class, named like one
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3

_INT16 = Struct(">h")
_INT32 = Struct(">i")


class MalformedConsumerProtocol(ValueError):
    """Bytes that are no subscription or assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a consumer wants to read, and what it still owns."""

    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generation_id: int = -1
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAssignment:
    """What a consumer is given."""

    partitions: Mapping[str, tuple[int, ...]]
    user_data: bytes | None = None


def version_of(data: bytes) -> int:
    """The version something was written in."""
    return _Reader(data).version


def read_subscription(data: bytes) -> Subscription:
    """Read a subscription; MalformedConsumerProtocol if it is none."""
    reader = _Reader(data)
    topics = tuple(reader.string() for _ in range(reader.count()))
    user_data = reader.nullable_bytes()
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned=reader.partitions() if reader.version >= 1 else {},
        generation_id=reader.int32() if reader.version >= 2 else -1,
        rack_id=reader.nullable_string() if reader.version >= 3 else None,
    )


def read_assignment(data: bytes) -> EmbeddedAssignment:
    """Read an assignment; MalformedConsumerProtocol if it is none."""
    reader = _Reader(data)
    partitions = reader.partitions()
    return EmbeddedAssignment(partitions=partitions, user_data=reader.nullable_bytes())


def write_subscription(subscription: Subscription, *, version: int = VERSION_MAX) -> bytes:
    """A subscription as bytes."""
    version = min(version, VERSION_MAX)
    parts = [_INT16.pack(version), _INT32.pack(len(subscription.topics))]
    parts += [_string(topic) for topic in subscription.topics]
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts.append(_partitions(subscription.owned))
    if version >= 2:
        parts.append(_INT32.pack(subscription.generation_id))
    if version >= 3:
        parts.append(_INT16.pack(-1) if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(parts)


def write_assignment(partitions: Mapping[str, Sequence[int]], *, version: int, user_data: bytes | None = None) -> bytes:
    """An assignment as bytes, in a version that its reader knows."""
    return _INT16.pack(min(version, VERSION_MAX)) + _partitions(partitions) + _nullable_bytes(user_data)


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _nullable_bytes(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data


def _partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    parts = [_INT32.pack(len(partitions))]
    for topic, indexes in partitions.items():
        parts += [_string(topic), _INT32.pack(len(indexes)), *(_INT32.pack(index) for index in indexes)]
    return b"".join(parts)


class _Reader:
    """A place in bytes that somebody else wrote."""

    __slots__ = ("_data", "_position", "version")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        version = self._unpack(_INT16)
        if version < 0:
            raise MalformedConsumerProtocol(f"Unsupported version {version}.")
        self.version = min(version, VERSION_MAX)

    def _unpack(self, form: Struct) -> int:
        try:
            value: int = form.unpack_from(self._data, self._position)[0]
        except StructError as error:
            raise MalformedConsumerProtocol("The bytes end too early.") from error
        self._position += form.size
        return value

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise MalformedConsumerProtocol("The bytes end too early.")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int32(self) -> int:
        """A number."""
        return self._unpack(_INT32)

    def count(self) -> int:
        """How many follow; each takes a byte at least, so a count that cannot be true is refused before any is read."""
        count = self.int32()
        if not 0 <= count <= len(self._data):
            raise MalformedConsumerProtocol(f"{count} elements cannot be there.")
        return count

    def string(self) -> str:
        """A text that must be there."""
        text = self.nullable_string()
        if text is None:
            raise MalformedConsumerProtocol("A text is missing.")
        return text

    def nullable_string(self) -> str | None:
        """A text, or none."""
        length = self._unpack(_INT16)
        if length == -1:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise MalformedConsumerProtocol("A text is not UTF-8.") from error

    def nullable_bytes(self) -> bytes | None:
        """Bytes, or none."""
        length = self.int32()
        return None if length == -1 else self._take(length)

    def partitions(self) -> dict[str, tuple[int, ...]]:
        """Partitions by topic."""
        by_topic: dict[str, tuple[int, ...]] = {}
        for _ in range(self.count()):
            topic = self.string()
            by_topic[topic] = tuple(self.int32() for _ in range(self.count()))
        return by_topic
