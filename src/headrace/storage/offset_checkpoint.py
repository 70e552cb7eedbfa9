"""Checkpoints of one offset per partition ("topic partition offset" lines): recovery points, log starts and so on."""

from collections.abc import Mapping
from threading import Lock

from headrace.storage.checkpoint_file import decode_entries, encode_entries, parse_number, replace_file
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import Files

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"

_CHANGING = Lock()
"""Held from reading a checkpoint to writing it; changes are rare, so one lock does for all files."""


def read_offsets(files: Files, path: str) -> dict[str, int]:
    """Offsets by log name ("topic-0"); empty if there is no such file, CorruptLog if it cannot be read."""
    try:
        data = files.read(path)
    except FileNotFoundError:
        return {}
    entries = decode_entries(data)
    if entries is None:
        raise CorruptLog(f"{path} is no checkpoint file")
    try:
        return {f"{topic}-{parse_number(part, bits=32)}": parse_number(offset) for topic, part, offset in entries}
    except ValueError as fault:
        raise CorruptLog(f"{path} has a line that is no 'topic partition offset': {fault}") from fault


def note_offset(files: Files, path: str, name: str, offset: int) -> None:
    """Note one log's offset in a checkpoint, of which nothing is kept if it cannot be read; any thread."""
    with _CHANGING:
        try:
            offsets = read_offsets(files, path)
        except CorruptLog:
            offsets = {}
        write_offsets(files, path, {**offsets, name: offset})


def forget_offset(files: Files, path: str, name: str, *, above: int = -1) -> None:
    """Take one log out of a checkpoint if its offset is greater than `above`; any thread."""
    with _CHANGING:
        try:
            offsets = read_offsets(files, path)
        except CorruptLog:
            return
        if offsets.get(name, -1) > above:
            write_offsets(files, path, {key: value for key, value in offsets.items() if key != name})


def write_offsets(files: Files, path: str, offsets: Mapping[str, int]) -> None:
    """Replace a checkpoint; durable on return."""
    lines = []
    for name, offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        lines.append(f"{topic} {partition} {offset}")
    replace_file(files, path, encode_entries(lines))
