"""The aborted transactions of a segment (`.txnindex`), which a read_committed consumer is told to skip (KIP-98).

    entry: version i16 = 0 · producer id i64 · first offset i64 · last offset i64 · last stable offset at the abort i64

The file exists only where something was aborted.
"""

import struct
from typing import NamedTuple

from headrace.storage.file_names import TRANSACTION_INDEX
from headrace.storage.files import write_all
from headrace.storage.segment import Segment

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One producer's aborted transaction: from its first record to its abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def decode_transactions(data: bytes) -> list[AbortedTransaction] | None:
    """The transactions in a file's bytes, or None if those cannot be right."""
    if len(data) % _ENTRY.size:
        return None
    found = []
    last = -1
    for version, *fields in _ENTRY.iter_unpack(data):
        transaction = AbortedTransaction._make(fields)
        if version != _VERSION or transaction.last_offset <= last:
            return None
        last = transaction.last_offset
        found.append(transaction)
    return found


def encode_transaction(transaction: AbortedTransaction) -> bytes:
    """One entry's bytes."""
    return _ENTRY.pack(_VERSION, *transaction)


def read_transactions(segment: Segment) -> list[AbortedTransaction] | None:
    """A segment's aborted transactions in order of their markers; None if the file cannot be right."""
    try:
        return decode_transactions(segment.files.read(segment.path(TRANSACTION_INDEX)))
    except FileNotFoundError:
        return []


def append_transaction(segment: Segment, transaction: AbortedTransaction) -> None:
    """Add an aborted transaction, whose marker is the last in the segment."""
    path = segment.path(TRANSACTION_INDEX)
    stat = segment.files.stat(path)
    file = segment.files.open(path, create=stat is None)
    write_all(file, encode_transaction(transaction), stat.size if stat is not None else 0)


def aborted_within(
    transactions: list[AbortedTransaction], start_offset: int, end_offset: int
) -> tuple[list[AbortedTransaction], bool]:
    """Those that touch [start, end), and whether no later one can: then later segments need not be asked."""
    found = []
    for transaction in transactions:
        if transaction.last_offset >= start_offset and transaction.first_offset < end_offset:
            found.append(transaction)
        if transaction.last_stable_offset >= end_offset:
            return found, True
    return found, False
