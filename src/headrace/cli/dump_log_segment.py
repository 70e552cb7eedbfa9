"""kafka-dump-log's view of a segment or a snapshot of the metadata log: batches, and the records in them."""

from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.dump_log_decoders import compact
from headrace.cli.embedded_messages import embedded_json
from headrace.cli.session import Failure
from headrace.records.batch import HEADER_BYTES, MAGIC, CorruptBatch, check_batch, split_batches
from headrace.records.compression import CODEC_NAMES
from headrace.records.control import ControlType
from headrace.records.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.cli.dump_log_decoders import Parser
    from headrace.cli.report import Report
    from headrace.records.batch import BatchHeader
    from headrace.records.walk import Record

ALL_BYTES = 2**31 - 1
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_CONTROL_KEY = struct.Struct(">hh")
_END_MARKER = struct.Struct(">hi")
_EMBEDDED = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("KRaftVersion", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", "VotersRecord"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How much of a segment to show."""

    parse: Parser
    prints_data: bool
    is_deep: bool
    skips_metadata: bool
    max_bytes: int = ALL_BYTES


def read_file(path: str) -> bytes | mmap.mmap:
    """A file's bytes, mapped rather than read; Failure where there is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib doubles the import time of the tools
            if not os.fstat(file.fileno()).st_size:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror or error}", remedy="Give files that exist.") from None


def dump_segment(path: str, view: View, report: Report) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """Print a segment; answers it for programs, and the pairs of offsets between which some are missing."""
    name = os.path.basename(path)  # noqa: PTH119
    report.line(_title(name))
    data = memoryview(read_file(path))
    shown = data[: view.max_bytes]
    documents: list[dict[str, Any]] = []
    gaps: list[tuple[int, int]] = []
    last, position = -1, 0
    for position, header in _batches(shown, path):
        line, document = _batch(shown, position, header)
        report.line(line)
        if view.is_deep:
            records = []
            for record in _records(shown[position : position + header.size], path):
                if last not in (-1, record.offset - 1):
                    gaps.append((last, record.offset))
                last = record.offset
                records.append(_print_record(record, header, view, report))
            document["records"] = records
        if not report.is_text:
            documents.append(document)
        position += header.size  # noqa: PLW2901 - where the next one begins, or the rest
    if position < len(shown) and view.max_bytes == ALL_BYTES:
        what = "bytes of room" if _is_blank(shown[position:]) else "invalid bytes"
        report.line(f"Found {len(shown) - position} {what} at the end of {name}")
    return documents, gaps


def _title(name: str) -> str:
    if not name.endswith(".checkpoint"):
        start = name.split(".", 1)[0]
        if not start.isdigit():
            raise Failure(f'For input string: "{start}"', remedy="A segment's name is its first offset.")
        return f"Log starting offset: {int(start)}"
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    match = _SNAPSHOT.fullmatch(name)
    if match is None:
        raise Failure(f"{name} is not a snapshot's name", remedy="It is an offset, a dash, an epoch and .checkpoint.")
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}"


def _is_blank(data: memoryview) -> bool:
    """Whether there are only zeros: the file of a segment that grows is longer than its batches."""
    return len(data) >= HEADER_BYTES and bytes(data).count(0) == len(data)


def _batches(data: memoryview, path: str) -> Iterator[tuple[int, BatchHeader]]:
    end = 0
    try:
        for position, header in split_batches(data):
            if header.magic != MAGIC:
                raise Failure(f"Records of magic {header.magic} in {path} are not understood here.")
            yield position, header
            end = position + header.size
    except CorruptBatch as error:
        if _is_blank(data[end:]):
            return
        raise Failure(f"{path}: {error}", remedy="What follows cannot be read.") from None


def _records(batch: memoryview, path: str) -> Iterator[Record]:
    try:
        yield from walk(batch)
    except CorruptBatch as error:
        raise Failure(f"{path}: {error}", remedy="The batch's header is printed above.") from None


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _batch(data: memoryview, position: int, header: BatchHeader) -> tuple[str, dict[str, Any]]:
    try:
        check_batch(data, position)
        is_valid = True
    except CorruptBatch:
        is_valid = False
    horizon = header.delete_horizon_ms
    document: dict[str, Any] = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": horizon,
        "position": position,
        _timestamp_type(header): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else str(header.codec),
        "crc": header.crc,
        "isvalid": is_valid,
    }
    shown = document | {"deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]"}
    return " ".join(f"{name}: {_word(value)}" for name, value in shown.items()), document


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _print_record(record: Record, header: BatchHeader, view: View, report: Report) -> dict[str, Any]:
    """Print a record; answers it for programs."""
    document: dict[str, Any] = {
        "offset": record.offset,
        _timestamp_type(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": _sequence(record, header),
        "headerKeys": [name for name, _ in record.headers],
    }
    words = []
    if not view.skips_metadata:
        words = [f"{name}: {value}" for name, value in list(document.items())[:-1]]
        words.append(f"headerKeys: [{','.join(document['headerKeys'])}]")
        if header.is_control:
            control = _control(record)
            document["control"] = control
            words.append(control)
    if view.prints_data and not header.is_control:
        key, payload = view.parse(record)
        document |= {"key": key, "payload": payload}
        words += [f"{name}: {text}" for name, text in (("key", key), ("payload", payload)) if text is not None]
    report.line(f"| {' '.join(words)}" if words else "")
    return document


def _sequence(record: Record, header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + record.offset - header.base_offset) % 2**31


def _control(record: Record) -> str:
    """What a control record says."""
    key, value = record.key or b"", record.value or b""
    if len(key) < _CONTROL_KEY.size:
        return "controlType: UNKNOWN(-1)"
    kind = _CONTROL_KEY.unpack_from(key)[1]
    if kind in (ControlType.ABORT, ControlType.COMMIT) and len(value) >= _END_MARKER.size:
        return f"endTxnMarker: {ControlType(kind).name} coordinatorEpoch: {_END_MARKER.unpack_from(value)[1]}"
    if kind in _EMBEDDED:
        label, name = _EMBEDDED[ControlType(kind)]
        return f"{label} {compact(embedded_json(name, value, has_version_first=False))}"
    return f"controlType: UNKNOWN({kind})"
