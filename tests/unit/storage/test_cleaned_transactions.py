"""What the cleaner knows of transactions on its way through a log."""

import pytest

from headrace.records.batch import BatchHeader, CorruptBatch, read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import AbortedTransaction, EndTransactionMarker, build_end_marker
from headrace.storage.cleaned_transactions import CleanedTransactions

FIRST = AbortedTransaction(7, 10, 20, 21)
SECOND = AbortedTransaction(7, 30, 40, 41)


def data(offset: int, producer_id: int = 7, *, transactional: bool = True) -> BatchHeader:
    """A batch of one record."""
    batch = build_batch([NewRecord(1)], base_offset=offset, producer_id=producer_id, transactional=transactional)
    return read_header(batch)


def may_go(walk: CleanedTransactions, offset: int, *, committed: bool = False, producer_id: int = 7) -> bool:
    """Whether a marker may go."""
    marker = EndTransactionMarker(committed, 0, 1)
    batch = build_end_marker(marker, producer_id=producer_id, producer_epoch=0, base_offset=offset)
    return walk.may_go(read_header(batch), memoryview(batch))


@pytest.mark.parametrize(
    ("offset", "expected"), [(9, False), (10, True), (19, True), (21, False), (29, False), (30, True), (41, False)]
)
def test_what_was_aborted(offset: int, expected: bool) -> None:
    """Is a batch aborted from its transaction's first offset to its marker, and none of another producer?"""
    assert CleanedTransactions([SECOND, FIRST]).is_aborted(data(offset)) == expected
    assert not CleanedTransactions([SECOND, FIRST]).is_aborted(data(offset, producer_id=8))
    assert not CleanedTransactions([SECOND, FIRST]).is_aborted(data(offset, transactional=False))


def test_markers_stay_with_what_they_end() -> None:
    """Does a marker stay, and an abort stand in the index, exactly if a batch of its transaction was met?"""
    walk = CleanedTransactions([FIRST, SECOND])
    walk.is_aborted(data(12))
    walk.is_aborted(data(13, producer_id=8))

    assert not may_go(walk, 20)
    assert not may_go(walk, 22, committed=True, producer_id=8)
    assert may_go(walk, 23, committed=True, producer_id=8)
    assert may_go(walk, 40)
    assert may_go(walk, 50), "an abort of nothing"
    assert walk.retained == [FIRST]


def test_a_marker_that_cannot_be_read() -> None:
    """Is a control batch without a readable type an error, not a guess?"""
    batch = build_batch([NewRecord(1, b"x")], producer_id=7, transactional=True, control=True)

    with pytest.raises(CorruptBatch):
        CleanedTransactions([]).may_go(read_header(batch), memoryview(batch))
