"""Checkpoints of one offset per partition ("topic partition offset" lines): recovery points, log starts and so on."""

from collections.abc import Mapping

from headrace.storage.checkpoint_file import decode_entries, encode_entries, parse_number, replace_file
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import Files

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"


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


def write_offsets(files: Files, path: str, offsets: Mapping[str, int]) -> None:
    """Replace a checkpoint; durable on return."""
    lines = []
    for name, offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        lines.append(f"{topic} {partition} {offset}")
    replace_file(files, path, encode_entries(lines))
