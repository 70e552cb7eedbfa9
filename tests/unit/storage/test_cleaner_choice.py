"""Which log the cleaner picks, and which it leaves alone."""

from dataclasses import replace

import pytest

from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.storage.memory_files import MemoryFiles
from unit.storage.shelf import CONFIG, DAY, DIRECTORY, NOW, Shelf, dirty


def test_the_dirtiest_comes_first() -> None:
    """Is of several logs the one with the greatest dirty share picked, and one that is not compacted never?"""
    files = MemoryFiles()
    half = dirty("half-0", 80, files=files)
    cleaner = half.cleaner
    half.clean()
    half.put((b"new", b"y"))
    for _ in range(20):
        half.put((b"k", b"x" * 50))
    half.settle()
    full = dirty("full-0", 20, files=files)
    plain = dirty("plain-0", 200, replace(CONFIG, cleanup_compact=False, cleanup_delete=True), files)
    plan = cleaner.pick([half.log, full.log, plain.log], NOW)

    assert plan is not None
    assert plan.log is full.log
    assert plan.dirty_ratio == 1.0
    assert cleaner.pick([plain.log], NOW) is None


def test_the_dirty_share_must_be_worth_it() -> None:
    """Is a log left alone until more than min.cleanable.dirty.ratio of it is dirty?"""
    shelf = Shelf()
    for key in range(100):
        shelf.put((b"%d" % key, b"x" * 50))
    shelf.settle()
    shelf.clean()
    head = sum(segment.size for segment in shelf.log.segments()[:-1])
    while sum(segment.size for segment in shelf.log.segments()[:-1]) <= 2 * head:
        assert shelf.cleaner.pick([shelf.log], NOW) is None
        shelf.put((b"0", b"x" * 50))
        shelf.settle()

    assert shelf.cleaner.pick([shelf.log], NOW) is not None
    shelf.log.configure(replace(CONFIG, min_cleanable_dirty_ratio=0.9))
    assert shelf.cleaner.pick([shelf.log], NOW) is None


def test_max_compaction_lag_overrules_the_share() -> None:
    """Is a log that is hardly dirty cleaned when something in it has waited too long?"""
    shelf = dirty("table-0", 60, replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=DAY))

    assert shelf.cleaner.pick([shelf.log], NOW + DAY) is None
    assert shelf.cleaner.pick([shelf.log], NOW + DAY + 1) is not None


def test_young_records_are_left_alone() -> None:
    """Does nothing younger than min.compaction.lag.ms get touched, nor anything behind it?"""
    config = replace(CONFIG, min_compaction_lag_ms=DAY)
    shelf = Shelf(config)
    for timestamp in (NOW - 2 * DAY, NOW, NOW - 2 * DAY):
        for _ in range(20):
            shelf.put((b"k", b"x" * 50), timestamp=timestamp)
    shelf.settle()
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    shelf.run(plan)

    assert 10 < plan.end_offset <= 20
    assert set(range(plan.end_offset, 60)) <= set(shelf.records())


@pytest.mark.parametrize("mark", ["high_watermark", "recovery_point"])
def test_never_past_the_marks(mark: str) -> None:
    """Is nothing cleaned that is not committed or not flushed?"""
    shelf = dirty("table-0", 60)
    setattr(shelf.log, mark, 30)
    shelf.clean()

    assert 0 < shelf.cleaner.first_dirty_offset(shelf.log) <= 30
    assert set(range(30, 60)) <= set(shelf.records())


def test_never_the_active_segment() -> None:
    """Is a log of one segment never picked, however dirty?"""
    shelf = dirty("table-0", 60, replace(CONFIG, segment_bytes=1_000_000))

    assert shelf.cleaner.pick([shelf.log], NOW) is None


def test_a_broken_log_is_left_alone() -> None:
    """Is a log whose disk failed not picked?"""
    shelf = dirty("table-0", 60)
    shelf.log.fault = "EIO"

    assert shelf.cleaner.pick([shelf.log], NOW) is None


def test_open_transactions_hold_the_cleaner_back() -> None:
    """Is nothing from the first offset of an open transaction on cleaned, and more when it has ended?"""
    shelf = dirty("table-0", 30)
    shelf.put((b"k", b"maybe"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    for _ in range(60):
        shelf.put((b"k", b"x" * 50))
    shelf.settle()
    shelf.clean()
    assert 0 < shelf.cleaner.first_dirty_offset(shelf.log) <= 30
    shelf.append(build_end_marker(EndTransactionMarker(False, 0, NOW), producer_id=9, producer_epoch=0))
    shelf.settle()
    shelf.clean()

    assert shelf.cleaner.first_dirty_offset(shelf.log) > 30


def test_an_aborted_record_takes_nobodys_place() -> None:
    """Is a committed value still there though an aborted one came later, and is that one gone but not its marker?"""
    shelf = Shelf()
    committed = shelf.put((b"k", b"committed"))
    aborted = shelf.put((b"k", b"aborted"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    marker = shelf.append(build_end_marker(EndTransactionMarker(False, 0, NOW), producer_id=9, producer_epoch=0))
    for _ in range(30):
        shelf.put((b"other", b"x" * 50))
    shelf.settle()
    shelf.clean()
    batches = [header for segment in shelf.log.segments() for _, header in segment.headers()]

    assert committed in shelf.records()
    assert aborted not in shelf.records()
    assert marker in [header.base_offset for header in batches if header.is_control]


def test_the_transaction_index_is_carried_over() -> None:
    """Do the aborted transactions of all old segments stand in the new one's index, until nothing of them is left?"""
    shelf = Shelf()
    for number in range(40):
        shelf.put((b"k", b"x" * 50), producer_id=9, producer_epoch=0, base_sequence=number, transactional=True)
        if number % 9 == 8:
            shelf.append(build_end_marker(EndTransactionMarker(False, 0, NOW), producer_id=9, producer_epoch=0))
    shelf.append(build_end_marker(EndTransactionMarker(True, 0, NOW), producer_id=9, producer_epoch=0))
    shelf.log.roll(NOW)
    shelf.settle()
    before = shelf.log.aborted_transactions(0, shelf.log.log_end_offset)
    assert len([segment for segment in shelf.log.segments() if segment.aborted.exists]) > 2
    shelf.log.configure(replace(CONFIG, segment_bytes=10_000))
    shelf.clean()
    path = f"{DIRECTORY}/table-0/{0:020d}.txnindex"

    assert len(before) == 4
    assert shelf.log.aborted_transactions(0, shelf.log.log_end_offset) == before
    assert len(shelf.files.read(path)) == 4 * 34

    shelf.cleaner.truncated("table-0", 0)
    shelf.clean(NOW + 1)

    assert shelf.log.aborted_transactions(0, shelf.log.log_end_offset) == []
    assert shelf.files.stat(path) is None
