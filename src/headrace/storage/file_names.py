"""The names of a partition's files, as Kafka gives them: twenty digits of base offset and a suffix."""

import re
from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

SEGMENT_KINDS = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
"""A segment's files; the log comes first, so that an interrupted rename leaves a log with its name or without any."""

OFFSET_MAX = 2**63 - 1
_NAME = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?\Z")


class FileName(NamedTuple):
    """A file name taken apart."""

    base_offset: int
    kind: str
    suffix: str


def file_name(base_offset: int, kind: str, suffix: str = "") -> str:
    """The name of a file that begins at `base_offset`."""
    return f"{base_offset:020d}{kind}{suffix}"


def parse_file_name(name: str) -> FileName | None:
    """What a name means, or None if it is not one of ours."""
    match = _NAME.match(name)
    if match is None:
        return None
    base_offset = int(match[1])
    return FileName(base_offset, match[2], match[3] or "") if base_offset <= OFFSET_MAX else None
