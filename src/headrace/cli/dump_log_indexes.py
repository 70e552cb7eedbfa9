"""kafka-dump-log's view of the files beside a segment: offset and time index, aborted transactions, producers."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.cli.dump_log_segment import read_file
from headrace.cli.session import Failure
from headrace.records.batch import CorruptBatch, split_batches
from headrace.records.walk import walk
from headrace.storage.file_names import LOG, OFFSET_INDEX
from headrace.storage.producer_snapshot import decode_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.cli.report import Report
    from headrace.records.batch import BatchHeader

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED_ENTRY = struct.Struct(">hqqqq")
_NO_TIMESTAMP = -1

Pairs = list[tuple[int, int]]
Documents = list[dict[str, Any]]


@dataclass(slots=True)
class Problems:
    """What does not fit together, by file."""

    offsets: dict[str, Pairs] = field(default_factory=dict)
    timestamps: dict[str, Pairs] = field(default_factory=dict)
    order: dict[str, Pairs] = field(default_factory=dict)
    not_found: dict[str, Pairs] = field(default_factory=dict)

    def note(self, kind: dict[str, Pairs], path: str, pair: tuple[int, int]) -> None:
        """Remember a pair of numbers that should be the same, or in order."""
        kind.setdefault(os.path.abspath(path), []).append(pair)  # noqa: PTH100


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What to do with an index besides printing it."""

    sanity_only: bool
    verify_only: bool
    max_message_bytes: int


def _base_offset(path: str) -> int:
    start = os.path.basename(path).split(".", 1)[0]  # noqa: PTH119
    if not start.isdigit():
        raise Failure(f'For input string: "{start}"', remedy="An index file's name is its first offset.")
    return int(start)


def _beside(path: str, kind: str) -> str:
    directory, name = os.path.split(path)
    return os.path.join(directory, f"{name.split('.', 1)[0]}{kind}")  # noqa: PTH118


def _entries(path: str, layout: struct.Struct) -> list[tuple[int, ...]]:
    data = bytes(read_file(path))
    return list(layout.iter_unpack(data[: len(data) - len(data) % layout.size]))


def _check_sanity(path: str, layout: struct.Struct, last: int, base: int, what: str) -> None:
    """Refuse what the broker would make anew at its start."""
    size = os.path.getsize(path)  # noqa: PTH202
    if size % layout.size:
        raise Failure(
            f"{what} file {path} is corrupt, found {size} bytes which is neither positive nor a multiple of "
            f"{layout.size}."
        )
    if last < base:
        raise Failure(
            f"Corrupt {what.lower()} found, {what.lower()} file ({path}) has non-zero size but the last offset is "
            f"{last} which is less than the base offset {base}."
        )


def _first_batch(log: memoryview, position: int, max_bytes: int) -> BatchHeader | None:
    try:
        return next((header for _, header in split_batches(log[position : position + max_bytes])), None)
    except CorruptBatch:
        return None


def dump_offset_index(path: str, check: Check, problems: Problems, report: Report) -> Documents:
    """Print an offset index, each entry held against the log."""
    base, log = _base_offset(path), memoryview(read_file(_beside(path, LOG)))
    entries = _entries(path, _OFFSET_ENTRY)
    if not entries:
        report.line(f"{path} is empty.")
        return []
    if check.sanity_only:
        _check_sanity(path, _OFFSET_ENTRY, base + entries[-1][0], base, "Index")
        report.line(f"{path} passed sanity check.")
        return []
    documents: Documents = []
    for slot, (relative, position) in enumerate(entries):
        if slot and relative == 0:
            break  # a file that was mapped and not trimmed has zeros at its end
        offset = base + relative
        batch = _first_batch(log, position, check.max_message_bytes)
        found = -1 if batch is None else batch.last_offset
        if found != offset:
            problems.note(problems.offsets, path, (offset, found))
        if not check.verify_only:
            report.line(f"offset: {offset} position: {position}")
            documents.append({"offset": offset, "position": position})
    return documents


def dump_time_index(path: str, check: Check, problems: Problems, report: Report) -> Documents:
    """Print a time index, each entry held against the log."""
    base, log = _base_offset(path), memoryview(read_file(_beside(path, LOG)))
    positions = _entries(_beside(path, OFFSET_INDEX), _OFFSET_ENTRY)
    entries = _entries(path, _TIME_ENTRY)
    if check.sanity_only:
        _check_sanity(path, _TIME_ENTRY, base + entries[-1][1] if entries else base, base, "Time index")
        if entries and entries[-1][0] < entries[0][0]:
            raise Failure(
                f"Corrupt time index found, time index file ({path}) has non-zero size but the last timestamp is "
                f"{entries[-1][0]} which is less than the first timestamp {entries[0][0]}"
            )
        report.line(f"{path} passed sanity check.")
        return []
    documents: Documents = []
    before = _NO_TIMESTAMP
    for slot, (timestamp, relative) in enumerate(entries):
        if slot and relative == 0:
            break
        offset = base + relative
        start = max((position for indexed, position in positions if base + indexed <= offset), default=0)
        _check_time(path, log[start:], (timestamp, offset, before), problems)
        if not check.verify_only:
            report.line(f"timestamp: {timestamp} offset: {offset}")
            documents.append({"timestamp": timestamp, "offset": offset})
        before = timestamp
    return documents


def _sound_batches(log: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """All batches before one that cannot be, or the zeros at the end of a segment that grows."""
    with suppress(CorruptBatch):
        yield from split_batches(log)


def _check_time(path: str, log: memoryview, entry: tuple[int, int, int], problems: Problems) -> None:
    """Whether the batch that ends at the entry's offset is there and has the entry's timestamp as its greatest."""
    timestamp, offset, before = entry
    for position, header in _sound_batches(log):
        if header.last_offset < offset:
            continue
        if header.last_offset != offset:
            problems.note(problems.not_found, path, (offset, header.last_offset))
            return
        batch = log[position : position + header.size]
        greatest = max((record.timestamp for record in walk(batch)), default=_NO_TIMESTAMP)
        if greatest != timestamp:
            problems.note(problems.timestamps, path, (timestamp, greatest))
        if before >= timestamp:
            problems.note(problems.order, path, (timestamp, before))
        return
    problems.note(problems.not_found, path, (offset, -1))


def dump_aborted(path: str, report: Report) -> Documents:
    """Print the aborted transactions of a segment."""
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    documents: Documents = [dict(zip(names, entry, strict=True)) for entry in _entries(path, _ABORTED_ENTRY)]
    for document in documents:
        report.line(" ".join(f"{name}: {value}" for name, value in document.items()))
    return documents


def dump_producers(path: str, report: Report) -> Documents:
    """Print the producers of a snapshot."""
    entries = decode_snapshot(bytes(read_file(path)))
    if entries is None:
        raise Failure(f"Snapshot failed schema validation or its CRC: {path}", remedy="The broker makes a new one.")
    documents: Documents = []
    for entry in entries:
        document: dict[str, Any] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.current_transaction_first_offset,
            "lastTimestamp": entry.last_timestamp_ms,
        }
        if entry.batches:
            batch = entry.batches[-1]
            document |= {
                "firstSequence": batch.first_sequence,
                "lastSequence": batch.last_sequence,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.last_offset - batch.first_offset,
                "timestamp": entry.last_timestamp_ms,  # Kafka's file knows no other
            }
        open_from = entry.current_transaction_first_offset
        open_word = "OptionalLong.empty" if open_from < 0 else f"OptionalLong[{open_from}]"
        shown = document | {"currentTxnFirstOffset": open_word}
        line = " ".join(f"{name}: {value}" for name, value in shown.items())
        report.line(line if entry.batches else f"{line} ")
        documents.append(document)
    return documents
