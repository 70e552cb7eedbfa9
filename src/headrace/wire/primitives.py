"""The protocol's primitive types, read from and written to bytes.

Readers take a buffer and a position and give a value and the position after it. They are for bytes a peer sent:
whatever is wrong with these becomes MalformedRequest, either here or, for the errors Python itself raises on short
input (BAD_BYTES), at the codec's border. No reader believes a length before it has seen that the bytes are there.
"""

import struct
from functools import lru_cache
from uuid import UUID

from headrace.model.errors import MalformedRequest

OBJECTS_MAX = 40_000
"""Array elements one request may hold: room for 20,000 partitions, even if each is alone in its topic.

To read one, act on it and answer it takes 2 to 5 µs of the event loop, so the whole request takes up to 0.2 s.
"""

NUMBERS_MAX = 80_000
"""Plain numbers in arrays of one request: four for each of 20,000 partitions, say its replicas.

They are read at once, but some of them (partitions, mostly) are answered one by one, in 2 µs or more each.
"""

AMPLE_MAX = 2_000_000
"""Elements, and numbers, of a message that no stranger sent: it may describe all that a cluster has."""

TAGS_MAX = 10_000
"""Tagged fields one message may hold, as in Kafka 4.4; each unknown one costs us time and tells us nothing."""

STRING_BYTES_MAX = 0x7FFF
"""Java's readers refuse longer strings in every encoding, so nobody can have meant one."""

NAME_BYTES_CACHED = 256
"""Longest name kept in the cache of names: room for any topic (249), and no room for a peer to fill our memory."""

BAD_BYTES = (struct.error, IndexError, UnicodeDecodeError)
"""What Python raises on short or wrong input where a check of ours would only cost time."""

Buffer = bytes | bytearray | memoryview


class Budget:
    """How much a peer may still make us build from one request."""

    objects = OBJECTS_MAX
    numbers_max = NUMBERS_MAX
    tags = TAGS_MAX
    _numbers: "Budget | None" = None

    @property
    def numbers(self) -> "Budget":
        """The budget for arrays of plain numbers, made when the first one is met."""
        if self._numbers is None:
            self._numbers = Budget()
            self._numbers.objects = self.numbers_max
        return self._numbers

    def take_tags(self, count: int) -> None:
        """Account for `count` tagged fields."""
        self.tags -= count
        if self.tags < 0:
            raise MalformedRequest(f"more than {TAGS_MAX} tagged fields")


class AmpleBudget(Budget):
    """For what comes from our own log or from a server we asked: a limit, but not one for a request."""

    objects = AMPLE_MAX
    numbers_max = AMPLE_MAX


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """The UUID of 16 bytes; topic ids come again and again, and building one is ten times the lookup."""
    return UUID(bytes=raw)


@lru_cache(maxsize=4096)
def _cached_text(raw: bytes) -> str:
    return raw.decode()


def text_of(raw: bytes) -> str:
    """The text of a name that comes with every request, the same object each time; long ones are no names."""
    return _cached_text(raw) if len(raw) <= NAME_BYTES_CACHED else raw.decode()


def read_uuid(view: Buffer, at: int) -> tuple[UUID, int]:
    """16 bytes."""
    return uuid_of(_UUID.unpack_from(view, at)[0]), at + 16


_UUID = struct.Struct(">16s")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def read_uvarint(view: Buffer, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits in at most five bytes."""
    value = view[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at
    raise MalformedRequest("varint longer than 32 bits")


def _slice_end(view: Buffer, at: int, length: int) -> int:
    end = at + length
    if end > len(view):
        raise MalformedRequest(f"{length} bytes announced, {len(view) - at} left")
    return end


def _string(view: Buffer, at: int, length: int) -> tuple[str, int]:
    if length > STRING_BYTES_MAX:
        raise MalformedRequest(f"string of {length} bytes")
    end = at + length
    if end > len(view):
        raise MalformedRequest(f"{length} bytes announced, {len(view) - at} left")
    return str(view[at:end], "utf-8"), end


def _compact_string(view: Buffer, at: int, length: int) -> tuple[str, int]:
    """A string whose first byte of length is read already; most are short."""
    at += 1
    if length > 0x7F:
        length, at = read_uvarint(view, at - 1)
        return _string(view, at, length - 1)
    end = at + length - 1
    if end > len(view):
        raise MalformedRequest(f"{length - 1} bytes announced, {len(view) - at} left")
    return str(view[at:end], "utf-8"), end


def _null() -> MalformedRequest:
    return MalformedRequest("null where null is not allowed")


def read_string(view: Buffer, at: int) -> tuple[str, int]:
    """A string with a 16-bit length."""
    (length,) = _INT16.unpack_from(view, at)
    if length < 0:
        raise _null()
    return _string(view, at + 2, length)


def read_nullable_string(view: Buffer, at: int) -> tuple[str | None, int]:
    """A string with a 16-bit length, negative for null."""
    (length,) = _INT16.unpack_from(view, at)
    if length < 0:
        return None, at + 2
    return _string(view, at + 2, length)


def read_compact_string(view: Buffer, at: int) -> tuple[str, int]:
    """A string with a varint length, one more than it is."""
    length = view[at]
    if length == 0:
        raise _null()
    return _compact_string(view, at, length)


def read_compact_nullable_string(view: Buffer, at: int) -> tuple[str | None, int]:
    """A string with a varint length, one more than it is, zero for null."""
    length = view[at]
    if length == 0:
        return None, at + 1
    return _compact_string(view, at, length)


def read_nullable_records(view: Buffer, at: int) -> tuple[Buffer | None, int]:
    """A slice of the buffer itself, with a 32-bit length, negative for null."""
    (length,) = _INT32.unpack_from(view, at)
    at += 4
    if length < 0:
        return None, at
    end = _slice_end(view, at, length)
    return view[at:end], end


def read_compact_nullable_records(view: Buffer, at: int) -> tuple[Buffer | None, int]:
    """A slice of the buffer itself, with a varint length, one more than it is, zero for null."""
    length, at = read_uvarint(view, at)
    if length == 0:
        return None, at
    end = _slice_end(view, at, length - 1)
    return view[at:end], end


def read_records(view: Buffer, at: int) -> tuple[Buffer, int]:
    """A slice of the buffer itself, with a 32-bit length."""
    value, at = read_nullable_records(view, at)
    if value is None:
        raise _null()
    return value, at


def read_compact_records(view: Buffer, at: int) -> tuple[Buffer, int]:
    """A slice of the buffer itself, with a varint length, one more than it is."""
    value, at = read_compact_nullable_records(view, at)
    if value is None:
        raise _null()
    return value, at


def read_bytes(view: Buffer, at: int) -> tuple[bytes, int]:
    """Bytes of their own, with a 32-bit length."""
    value, at = read_records(view, at)
    return bytes(value), at


def read_nullable_bytes(view: Buffer, at: int) -> tuple[bytes | None, int]:
    """Bytes of their own, with a 32-bit length, negative for null."""
    value, at = read_nullable_records(view, at)
    return None if value is None else bytes(value), at


def read_compact_bytes(view: Buffer, at: int) -> tuple[bytes, int]:
    """Bytes of their own, with a varint length, one more than it is."""
    value, at = read_compact_records(view, at)
    return bytes(value), at


def read_compact_nullable_bytes(view: Buffer, at: int) -> tuple[bytes | None, int]:
    """Bytes of their own, with a varint length, one more than it is, zero for null."""
    value, at = read_compact_nullable_records(view, at)
    return None if value is None else bytes(value), at


def _refused_count(count: int, left: int, budget: Budget) -> MalformedRequest:
    if count < 0:
        return _null()
    return MalformedRequest(f"{count} elements announced, {left} bytes left, {budget.objects} more elements allowed")


def read_count(view: Buffer, at: int, budget: Budget, size_min: int) -> tuple[int, int]:
    """How many elements follow, each of at least `size_min` bytes."""
    (count,) = _INT32.unpack_from(view, at)
    at += 4
    if count < 0 or count * size_min > len(view) - at or count > budget.objects:
        raise _refused_count(count, len(view) - at, budget)
    budget.objects -= count
    return count, at


def read_nullable_count(view: Buffer, at: int, budget: Budget, size_min: int) -> tuple[int, int]:
    """How many elements follow, each of at least `size_min` bytes; -1 for a null array."""
    (count,) = _INT32.unpack_from(view, at)
    if count < 0:
        return -1, at + 4
    return read_count(view, at, budget, size_min)


def read_compact_count(view: Buffer, at: int, budget: Budget, size_min: int) -> tuple[int, int]:
    """How many elements follow, as a varint one more than it is, each of at least `size_min` bytes."""
    count = view[at]
    at += 1
    if count > 0x7F:
        count, at = read_uvarint(view, at - 1)
    count -= 1
    if count < 0 or count * size_min > len(view) - at or count > budget.objects:
        raise _refused_count(count, len(view) - at, budget)
    budget.objects -= count
    return count, at


def read_compact_nullable_count(view: Buffer, at: int, budget: Budget, size_min: int) -> tuple[int, int]:
    """How many elements follow, as a varint one more than it is; -1 for a null array."""
    if view[at] == 0:
        return -1, at + 1
    return read_compact_count(view, at, budget, size_min)


def read_tag(view: Buffer, at: int, previous: int) -> tuple[int, int, int]:
    """A tag, where its value starts and where it ends; tags come in rising order, each once (KIP-482)."""
    tag, at = read_uvarint(view, at)
    if tag <= previous:
        raise MalformedRequest(f"tag {tag} after tag {previous}")
    size, at = read_uvarint(view, at)
    return tag, at, _slice_end(view, at, size)


def skip_tags(view: Buffer, at: int, budget: Budget) -> int:
    """Past a section of tagged fields none of which we know."""
    count, at = read_uvarint(view, at)
    if count:
        budget.take_tags(count)
        previous = -1
        for _ in range(count):
            previous, _, at = read_tag(view, at, previous)
    return at


def write_uvarint(out: bytearray, value: int) -> None:
    """An unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _encode(value: str) -> bytes:
    raw = value.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(raw)} bytes cannot be sent: {value[:40]!r}…")
    return raw


def write_string(out: bytearray, value: str) -> None:
    """A string with a 16-bit length."""
    raw = _encode(value)
    out += _INT16.pack(len(raw))
    out += raw


def write_nullable_string(out: bytearray, value: str | None) -> None:
    """A string with a 16-bit length, -1 for null."""
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_compact_string(out: bytearray, value: str) -> None:
    """A string with a varint length, one more than it is; most are short."""
    raw = value.encode()
    length = len(raw) + 1
    if length < 0x80:
        out.append(length)
    else:
        raw = _encode(value)
        write_uvarint(out, length)
    out += raw


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    """A string with a varint length, one more than it is, zero for null."""
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_bytes(out: bytearray, value: Buffer) -> None:
    """Bytes with a 32-bit length."""
    out += _INT32.pack(len(value))
    out += value


def write_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    """Bytes with a 32-bit length, -1 for null."""
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: Buffer) -> None:
    """Bytes with a varint length, one more than it is."""
    write_uvarint(out, len(value) + 1)
    out += value


def write_compact_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    """Bytes with a varint length, one more than it is, zero for null."""
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def write_count(out: bytearray, count: int) -> None:
    """How many elements follow; -1 says that the array is null."""
    out += _INT32.pack(count)


def write_compact_count(out: bytearray, count: int) -> None:
    """How many elements follow, as a varint one more than it is; -1 says that the array is null."""
    write_uvarint(out, count + 1)


def write_tags(out: bytearray, tags: list[tuple[int, bytearray]]) -> None:
    """The tagged fields that are not at their defaults, in rising order of tag."""
    write_uvarint(out, len(tags))
    for tag, value in tags:
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value
