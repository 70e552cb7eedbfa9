"""Reads partitions over the wire, batch by batch, and remembers every batch it ever saw."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from headrace.model.errors import ErrorCode
from headrace.records.batch import check_batch, split_batches
from headrace.records.walk import walk
from wire_client import WireClient

NEVER_RECORD = b""
LATEST, EARLIEST = -1, -2

Place = tuple[str, int]


class ReadRecord(NamedTuple):
    """A record taken out of its batch."""

    offset: int
    key: bytes | None
    value: bytes


def whole_batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Base offset and bytes of each batch of an answer, its CRC checked; what is cut off at the end is left out."""
    view = memoryview(data)
    for position, header in split_batches(view):
        batch = view[position : position + header.size]
        check_batch(batch)
        yield header.base_offset, bytes(batch)


def records_of(data: bytes) -> Iterator[ReadRecord]:
    """The records of whole batches."""
    for _, batch in whole_batches(data):
        for record in walk(memoryview(batch), max_bytes=1 << 24):
            key = None if record.key is None else bytes(record.key)
            yield ReadRecord(record.offset, key, bytes(record.value or b""))


def last_offset_of(batch: bytes) -> int:
    """Where a batch ends."""
    base_offset, delta = struct.unpack_from(">q15xi", batch)
    return base_offset + delta


def batches_from(client: WireClient, place: Place, offset: int) -> Iterator[tuple[int, bytes]]:
    """Every batch from the one with `offset` on up to the high watermark of now."""
    topic, partition = place
    end = client.list_offset(topic, LATEST, partition=partition).offset
    while offset < end:
        found = client.fetch(topic, offset, partition=partition, max_bytes=1 << 22)
        assert found.error_code == 0, (place, offset, end, ErrorCode(found.error_code).name)
        before = offset
        for base_offset, batch in whole_batches(found.records):
            yield base_offset, batch
            offset = last_offset_of(batch) + 1
        assert offset > before, f"{place}: nothing at {offset}, though the end is {end}"


class Memory:
    """Every batch that was ever read of each partition, as a hash by its base offset: none may change or go."""

    def __init__(self, places: list[Place]) -> None:
        self._seen: dict[Place, dict[int, tuple[int, int]]] = {place: {} for place in places}
        self._ends: dict[Place, int] = defaultdict(int)

    def end(self, place: Place) -> int:
        """The offset behind the last batch seen of a partition."""
        return self._ends[place]

    def compare(self, client: WireClient, place: Place, offset: int = 0) -> Iterator[bytes]:
        """Read a partition again from a batch boundary on; gives the batches that are new."""
        seen = self._seen[place]
        expected = offset
        for base_offset, batch in batches_from(client, place, offset):
            assert base_offset == expected, f"{place}: a batch at {base_offset}, {expected} would be the next offset"
            expected = last_offset_of(batch) + 1
            now = (crc32(batch), expected)
            before = seen.setdefault(base_offset, now)
            assert now == before, f"{place}: the batch at {base_offset} is another than before"
            if base_offset >= self._ends[place]:
                self._ends[place] = expected
                yield batch
        assert expected >= self._ends[place], f"{place} ends at {expected}, it was read up to {self._ends[place]}"

    def boundary(self, place: Place, batches: int) -> int:
        """Where the last so many batches of what was seen begin."""
        known = list(self._seen[place])
        return known[max(0, len(known) - batches)] if known else 0
