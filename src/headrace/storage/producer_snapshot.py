"""A partition's producers at one offset, on disk (`<offset>.snapshot`), in Kafka's version 1 with an appendix of ours.

    version i16 = 1 · CRC-32C u32 of what follows · count i32 · entries
    entry: producer id i64 · epoch i16 · last sequence i32 · last offset i64 · offset delta i32 · timestamp i64 ·
           coordinator epoch i32 · first offset of the open transaction i64 (-1 = none)

Kafka's entry knows only the producer's last batch. A retry of an earlier one must be recognised after a restart too, so
the other remembered batches follow all entries; Kafka's reader takes the CRC over them and otherwise does not look.

    appendix: mark "HRB1" · for each entry in order: count u8, and per batch, oldest first, the last one again included:
              first sequence i32 · last sequence i32 · first offset i64 · last offset i64 · timestamp i64
"""

import struct
from collections.abc import Iterable

from crc32c import crc32c

from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.storage.checkpoint_file import replace_file
from headrace.storage.file_names import SNAPSHOT, file_name
from headrace.storage.files import Files

VERSION = 1
KEPT = 2
"""How many snapshots stay at least: the newest, and one to fall back on."""

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_MARK = b"HRB1"
_BATCH = struct.Struct(">iiqqq")
_SEQUENCES = 2**31
_BATCHES_MAX = 255


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """A snapshot file's bytes."""
    parts: list[bytes] = []
    appendix: list[bytes] = [_MARK]
    for entry in entries:
        batches = entry.batches[-_BATCHES_MAX:]
        last = batches[-1] if batches else None
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.last_offset - last.first_offset if last else 0,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.current_transaction_first_offset,
            )
        )
        appendix.append(bytes([len(batches)]))
        appendix.extend(_BATCH.pack(*batch) for batch in batches)
    body = b"".join((_COUNT.pack(len(parts)), *parts, *appendix))
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry] | None:
    """The producers in a snapshot's bytes, or None if those are not whole."""
    if len(data) < _HEAD.size + _COUNT.size:
        return None
    version, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if version != VERSION or crc32c(body) != crc:
        return None
    (count,) = _COUNT.unpack_from(body)
    end = _COUNT.size + count * _ENTRY.size
    if count < 0 or end > len(body):
        return None
    histories = _decode_appendix(body[end:], count)
    if histories is None:
        return None
    return [
        _entry(fields, history)
        for fields, history in zip(_ENTRY.iter_unpack(body[_COUNT.size : end]), histories, strict=True)
    ]


def _entry(fields: tuple[int, ...], history: tuple[ProducerBatch, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, open_from = fields
    if not history and last_offset >= 0:
        first_sequence = (last_sequence - delta) % _SEQUENCES
        history = (ProducerBatch(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp),)
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, open_from, history)


def _decode_appendix(data: bytes, count: int) -> list[tuple[ProducerBatch, ...]] | None:
    if not data.startswith(_MARK):
        return [()] * count
    histories: list[tuple[ProducerBatch, ...]] = []
    position = len(_MARK)
    for _ in range(count):
        if position >= len(data):
            return None
        end = position + 1 + data[position] * _BATCH.size
        if end > len(data):
            return None
        histories.append(tuple(map(ProducerBatch._make, _BATCH.iter_unpack(data[position + 1 : end]))))
        position = end
    return histories


class ProducerSnapshots:
    """The snapshot files of one partition."""

    __slots__ = ("_directory", "_files", "offsets")

    def __init__(self, files: Files, directory: str, offsets: Iterable[int]) -> None:
        self._files = files
        self._directory = directory
        self.offsets = sorted(offsets)

    def newest(self, limit_offset: int) -> tuple[int, list[ProducerEntry]] | None:
        """The last whole snapshot at or below an offset."""
        for offset in reversed(self.offsets):
            if offset <= limit_offset:
                entries = decode_snapshot(self._files.read(self._path(offset)))
                if entries is not None:
                    return offset, entries
        return None

    def write(self, offset: int, entries: Iterable[ProducerEntry], *, sync: bool, recovery_point: int) -> None:
        """Write the state as of `offset`, and let the oldest go, but for those recovery may have to start from."""
        replace_file(self._files, self._path(offset), encode_snapshot(entries), sync=sync)
        if offset not in self.offsets:
            self.offsets.append(offset)
            self.offsets.sort()
        while len(self.offsets) > KEPT and self.offsets[1] <= recovery_point:
            self._files.unlink(self._path(self.offsets.pop(0)))

    def remove_from(self, offset: int) -> None:
        """Remove the snapshots above an offset, which describe what is no longer there."""
        while self.offsets and self.offsets[-1] > offset:
            self._files.unlink(self._path(self.offsets.pop()))

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT)}"
