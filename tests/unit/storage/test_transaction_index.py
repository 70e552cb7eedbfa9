"""Is the index of aborted transactions Kafka's, and does it name those a reader must skip?"""

import pytest

from headrace.storage.segment import Segment
from headrace.storage.transaction_index import (
    AbortedTransaction,
    aborted_within,
    append_transaction,
    decode_transactions,
    encode_transaction,
    read_transactions,
)

FIRST = AbortedTransaction(7, 10, 20, 5)
SECOND = AbortedTransaction(9, 5, 30, 28)


def test_the_file_is_kafkas():
    """Is an entry version, producer, first and last offset, and last stable offset?"""
    expected = "0000 0000000000000007 000000000000000a 0000000000000014 0000000000000005"

    assert encode_transaction(FIRST) == bytes.fromhex(expected)


def test_appended_and_read(disk):
    """Do transactions come back in order, and is a missing file no transaction?"""
    segment = Segment.create(disk.files, disk.root, 0, now_ms=0)

    assert read_transactions(segment) == []

    append_transaction(segment, FIRST)
    append_transaction(segment, SECOND)

    assert read_transactions(segment) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "data",
    [b"x", b"\x00\x01" + bytes(32), encode_transaction(SECOND) + encode_transaction(FIRST)],
    ids=["cut", "version", "order"],
)
def test_bad_files(data):
    """Is a file that cannot be right reported as such?"""
    assert decode_transactions(data) is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 5, ([], True)),
        (0, 6, ([SECOND], True)),
        (0, 50, ([FIRST, SECOND], False)),
        (21, 40, ([SECOND], False)),
        (31, 40, ([], False)),
        (20, 28, ([FIRST, SECOND], True)),
    ],
)
def test_aborted_within(start, end, expected):
    """Are just those named that touch the range, and is it known when no later one can?"""
    assert aborted_within([FIRST, SECOND], start, end) == expected
