"""The file of a segment's aborted transactions, and what memory knows of it."""

import gc
import weakref

import pytest

from headrace.storage.corruption import CorruptLog
from headrace.storage.segment import Segment
from headrace.storage.transaction_index import AbortedTransaction

FIRST = AbortedTransaction(7, 10, 20, 21)
SECOND = AbortedTransaction(9, 5, 30, 31)


def make(disk):
    """An empty segment from offset 5 on."""
    return Segment.create(disk.files, disk.root, 5, now_ms=0)


def again(disk, segment):
    """The segment as another process finds it."""
    opened = Segment(disk.files, disk.root, 5, size=segment.size)
    opened.aborted.exists = disk.files.stat(segment.path(".txnindex")) is not None
    return opened


def entries(segment):
    """All that is known."""
    index = segment.aborted.index
    return [index.entry(slot) for slot in range(len(index))]


def test_written_and_read(disk):
    """Is what was noted in the file once it is written, each entry once, and is there no file before?"""
    segment = make(disk)
    assert not segment.aborted.write()
    assert entries(again(disk, segment)) == []
    segment.aborted.note(FIRST)
    assert segment.aborted.write()
    segment.aborted.note(SECOND)
    assert segment.aborted.write()
    assert not segment.aborted.write()

    assert entries(again(disk, segment)) == [FIRST, SECOND]


def test_cutting(disk):
    """Are transactions beyond a cut forgotten in memory and on the disk, the file with the last?"""
    segment = make(disk)
    segment.aborted.note(FIRST)
    segment.aborted.write()
    segment.aborted.note(SECOND)
    segment.aborted.cut(30)
    assert entries(again(disk, segment)) == entries(segment) == [FIRST]
    segment.aborted.cut(20)

    assert entries(again(disk, segment)) == entries(segment) == []
    assert disk.files.stat(segment.path(".txnindex")) is None


def test_giving_up_memory(disk):
    """Is memory given up only if the file has it all, and read again?"""
    segment = make(disk)
    segment.aborted.note(FIRST)
    segment.aborted.release()
    assert segment.aborted.is_at_hand
    segment.aborted.write()
    segment.aborted.release()
    assert not segment.aborted.is_at_hand

    assert entries(segment) == [FIRST]


def test_a_bad_file(disk):
    """Is a file that cannot be right an error, and replaced by what is noted anew?"""
    segment = make(disk)
    disk.files.open(segment.path(".txnindex"), create=True).pwrite(b"x" * 34, 0)
    opened = again(disk, segment)
    assert not opened.aborted.is_sound()
    with pytest.raises(CorruptLog, match="txnindex"):
        assert opened.aborted.index
    opened.aborted.reset()
    opened.aborted.note(FIRST)
    opened.aborted.replace()

    assert entries(again(disk, segment)) == [FIRST]


def test_a_forgotten_segment_is_gone_at_once(disk):
    """Does a segment that nobody knows any more go without the collector, and its descriptor with it?"""
    segment = make(disk)
    segment.aborted.note(FIRST)
    gone = weakref.ref(segment)
    gc.disable()
    try:
        del segment
        assert gone() is None
    finally:
        gc.enable()
