"""Is the index of aborted transactions Kafka's, and does it name those a reader must skip?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage.transaction_index import AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(7, 10, 20, 5)
SECOND = AbortedTransaction(9, 5, 30, 28)


def index(*transactions: AbortedTransaction) -> TransactionIndex:
    """An index of these."""
    made = TransactionIndex()
    for transaction in transactions:
        made.append(transaction)
    return made


def encoded(*transactions: AbortedTransaction) -> bytes:
    """Their bytes."""
    return index(*transactions).encode()


def test_the_file_is_kafkas():
    """Is an entry version, producer, first and last offset, and last stable offset?"""
    expected = "0000 0000000000000007 000000000000000a 0000000000000014 0000000000000005"

    assert encoded(FIRST) == bytes.fromhex(expected)


def test_written_and_read():
    """Do transactions come back in order, and are only the new ones encoded if so asked?"""
    made = index(FIRST, SECOND)
    read = TransactionIndex.decode(made.encode(), base_offset=0, end_offset=31)

    assert [read.entry(0), read.entry(1)] == [FIRST, SECOND]
    assert len(read) == 2
    assert made.encode(1) == encoded(SECOND)


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"\x00\x01" + bytes(32),
        encoded(SECOND, FIRST),
        encoded(FIRST, FIRST),
        encoded(AbortedTransaction(1, 20, 20, 21)),
        encoded(AbortedTransaction(1, -1, 20, 21)),
        encoded(AbortedTransaction(1, 2, 40, 41)),
        encoded(AbortedTransaction(1, 2, 8, 9)),
    ],
    ids=["cut", "version", "order", "twice", "empty", "negative", "behind the segment", "before the segment"],
)
def test_bad_files(data):
    """Is a file that cannot be right reported as such?"""
    assert TransactionIndex.decode(data, base_offset=9, end_offset=40) is None


def test_an_open_end():
    """Is any marker believed in a segment that still grows?"""
    assert TransactionIndex.decode(encoded(SECOND), base_offset=9, end_offset=-1) is not None


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
def test_search(start, end, expected):
    """Are just those named that touch the range, and is it known when no later one can?"""
    assert index(FIRST, SECOND).search(start, end) == expected


@given(st.lists(st.integers(1, 200), unique=True, max_size=12), st.integers(0, 210))
def test_truncation(markers, offset):
    """Does exactly what ended before an offset stay?"""
    transactions = [AbortedTransaction(1, marker - 1, marker, marker + 1) for marker in sorted(markers)]
    made = index(*transactions)
    made.truncate(offset)

    assert [made.entry(slot) for slot in range(len(made))] == [t for t in transactions if t.last_offset < offset]
