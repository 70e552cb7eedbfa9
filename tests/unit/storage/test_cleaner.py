"""The log cleaner over whole logs: what it leaves, and what it never touches."""

import errno
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from headrace.model.errors import StorageFault
from headrace.records.batch import read_header
from headrace.records.walk import walk
from headrace.storage.cleaner import RETRY_MS, CleaningStopped
from headrace.storage.offset_checkpoint import CLEANER_OFFSETS, read_offsets
from unit.storage.shelf import CONFIG, DAY, DIRECTORY, NOW, Shelf, check, dirty


@pytest.mark.parametrize("seed", range(8))
def test_against_the_model(seed: int) -> None:
    """Is the last value of every key what it was, after any number of rounds, restarts and days?"""
    chance = Random(seed)
    shelf = Shelf()
    now_ms = NOW
    for _ in range(5):
        shelf.fill(chance, 40)
        shelf.settle()
        before = shelf.records()
        assert shelf.clean(now_ms)
        check(shelf)
        assert len(shelf.records()) < len(before)
        now_ms += chance.choice([0, DAY // 2, 2 * DAY])
        entries, end = shelf.producers.entries(), shelf.log.log_end_offset
        shelf.log = shelf.open(CONFIG, recovery_point=chance.choice([0, end]))
        assert shelf.log.log_end_offset == end
        assert {entry.producer_id: entry.batches[-1] for entry in entries} == {
            entry.producer_id: entry.batches[-1] for entry in shelf.producers.entries()
        }
        check(shelf)


def test_each_key_stays_once_in_the_clean_head() -> None:
    """Is below the first dirty offset every key there at most once?"""
    shelf = Shelf()
    shelf.fill(Random(1), 100)
    shelf.settle()
    shelf.clean()
    clean_up_to = shelf.cleaner.first_dirty_offset(shelf.log)
    keys = [key for offset, (_, key, _) in shelf.records().items() if offset < clean_up_to]

    assert clean_up_to == shelf.log.segments()[-1].base_offset
    assert len(keys) == len(set(keys)) > 0


def test_small_segments_are_put_together() -> None:
    """Do many segments of little content, which a first round leaves, become few in the next?"""
    shelf = Shelf()
    for _ in range(2):
        for _ in range(200):
            shelf.put((b"same", b"x" * 40))
        shelf.settle()
        count, size = len(shelf.log.segments()), shelf.log.size_bytes
        assert shelf.clean()

    assert len(shelf.log.segments()) < 0.7 * count
    assert shelf.log.size_bytes < size // 3
    assert shelf.log.size_bytes == sum(segment.size for segment in shelf.log.segments())
    check(shelf)


@pytest.mark.parametrize("offset", range(0, 60, 7))
def test_reads_go_on_over_the_gaps(offset: int) -> None:
    """Does a fetch from an offset that was cleaned away begin at the next one that is there?"""
    shelf = Shelf()
    shelf.fill(Random(2), 60)
    shelf.settle()
    shelf.clean()
    end = shelf.log.log_end_offset
    found: list[int] = []
    position = offset
    while position < end:
        span = shelf.log.read(position, max_bytes=10_000, limit_offset=end)
        view = span.view()
        while view:
            header = read_header(view)
            found += [record.offset for record in walk(view[: header.size])]
            view, position = view[header.size :], header.next_offset

    assert [number for number in found if number >= offset] == [n for n in sorted(shelf.records()) if n >= offset]


def test_tombstones_stay_for_delete_retention_and_then_go() -> None:
    """Can a reader that was away for less than delete.retention.ms still learn of every delete?"""
    shelf = Shelf()
    shelf.put((b"gone", b"1"), (b"here", b"1"))
    tombstone = shelf.put((b"gone", None)) + 0
    for _ in range(30):
        shelf.put((b"filler", b"x" * 50))
    shelf.settle()
    shelf.clean()
    assert tombstone in shelf.records()
    for days, expected in ((0.99, True), (1.0, False)):
        for _ in range(60):
            shelf.put((b"filler", b"x" * 50))
        shelf.settle()
        assert shelf.clean(NOW + int(days * DAY))
        assert (tombstone in shelf.records()) == expected
    check(shelf)


def test_the_map_may_be_too_small_for_the_tail() -> None:
    """Does a round with room for a few keys do a part, and the next ones the rest, with the same end?"""
    shelf = Shelf()
    shelf.fill(Random(3), 100, keys=40)
    shelf.settle()
    shelf.cleaner = shelf.new_cleaner(dedupe_buffer_bytes=24 * 10)
    ends = []
    while (plan := shelf.cleaner.pick([shelf.log], NOW)) is not None and len(ends) < 200:
        shelf.run(plan)
        ends.append(shelf.cleaner.statistics.end_offset)
        check(shelf)

    assert len(ends) > 2
    assert ends == sorted(set(ends))


def test_a_batch_that_no_map_holds() -> None:
    """Is a log left alone, and said so, when one batch has more keys than the map?"""
    shelf = Shelf()
    for _ in range(3):
        shelf.put(*((b"%d" % key, b"1") for key in range(30)))
    shelf.settle()
    shelf.cleaner = shelf.new_cleaner(dedupe_buffer_bytes=24 * 10)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    with pytest.raises(CleaningStopped, match="dedupe buffer"):
        shelf.run(plan)

    assert shelf.cleaner.pick([shelf.log], NOW) is None
    assert shelf.cleaner.pick([shelf.log], NOW + RETRY_MS) is not None
    check(shelf)


def test_the_last_batch_of_a_producer_stays() -> None:
    """Does an idle producer's sequence survive though all its records were superseded, from the log alone?"""
    shelf = Shelf()
    shelf.put((b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    shelf.put((b"a", b"2"), (b"a", b"3"), producer_id=5, producer_epoch=0, base_sequence=1)
    for _ in range(40):
        shelf.put((b"a", b"x" * 50))
    shelf.settle()
    shelf.clean()
    for name in shelf.files.listdir(f"{DIRECTORY}/table-0"):
        if name.endswith(".snapshot"):
            shelf.files.unlink(f"{DIRECTORY}/table-0/{name}")
    shelf.open(CONFIG, recovery_point=0)
    (entry,) = shelf.producers.entries()

    assert not {0, 1, 2} & set(shelf.records())
    assert [(batch.first_sequence, batch.last_sequence, batch.last_offset) for batch in entry.batches] == [(1, 2, 2)]


def test_gaps_that_another_cleaner_left() -> None:
    """Is the end of a segment from which another broker's cleaner took the last batch closed again?"""
    shelf = Shelf()
    for key in range(60):
        shelf.put((b"%d" % key, b"x" * 50))
    shelf.settle()
    first = shelf.log.segments()[0]
    *_, (position, _, last_offset, _) = first.outlines()
    first.truncate(position)
    del shelf.written[last_offset]
    assert shelf.clean()

    check(shelf)
    assert set(shelf.records()) == set(shelf.written)


# The mark


def test_the_checkpoint_says_where_the_tail_begins() -> None:
    """Is the mark written after a round, beside those of others, and read again by the next cleaner?"""
    shelf = dirty("table-0", 60)
    shelf.clean()
    active = shelf.log.segments()[-1].base_offset
    checkpoint = f"{DIRECTORY}/{CLEANER_OFFSETS}"

    assert read_offsets(shelf.files, checkpoint) == {"table-0": active}
    assert shelf.new_cleaner().first_dirty_offset(shelf.log) == active
    assert shelf.new_cleaner().pick([shelf.log], NOW) is None
    other = dirty("other-0", 60, files=shelf.files)
    plan = shelf.cleaner.pick([other.log], NOW)
    assert plan is not None
    shelf.run(plan)
    assert list(read_offsets(shelf.files, checkpoint)) == ["table-0", "other-0"]


def test_another_log_of_the_same_name() -> None:
    """Is a log that was deleted and made again between two looks dirty from its start, and its mark not written?"""
    shelf = dirty("table-0", 60)
    shelf.clean()
    again = dirty("table-0", 60)
    assert shelf.cleaner.first_dirty_offset(again.log) > 0
    plan = shelf.cleaner.pick([again.log], NOW)

    assert plan is not None
    assert plan.first_dirty_offset == 0


def test_a_log_that_is_deleted_while_it_is_cleaned() -> None:
    """Does the checkpoint not learn of a log that is gone when its cleaning ends?"""
    shelf = dirty("table-0", 60)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    groups = shelf.cleaner.clean(plan)
    for group in groups:
        shelf.cleaner.apply(group)
        shelf.log.deleted = True

    assert read_offsets(shelf.files, f"{DIRECTORY}/{CLEANER_OFFSETS}") == {}


@pytest.mark.parametrize("content", [b"", b"nonsense", b"0\n1\ntable 0 99999\n"])
def test_a_wrong_checkpoint_means_everything_is_dirty(content: bytes) -> None:
    """Is a mark that cannot be read, or lies outside the log, as good as none?"""
    shelf = dirty("table-0", 60)
    shelf.files.open(f"{DIRECTORY}/{CLEANER_OFFSETS}", create=True).pwrite(content, 0)

    assert shelf.new_cleaner().first_dirty_offset(shelf.log) == 0


def test_a_cut_log_is_dirty_from_there() -> None:
    """Does a truncation move the mark back, and only back?"""
    shelf = dirty("table-0", 60)
    shelf.clean()
    mark = shelf.cleaner.first_dirty_offset(shelf.log)
    shelf.cleaner.truncated("table-0", mark + 5)
    assert shelf.cleaner.first_dirty_offset(shelf.log) == mark
    shelf.cleaner.truncated("table-0", 10)

    assert shelf.cleaner.first_dirty_offset(shelf.log) == 10


# Manners


def test_the_rate_is_kept() -> None:
    """Does the cleaner sleep as long as its bytes may take, in steps and not at the end?"""
    shelf = dirty("table-0", 200)
    shelf.cleaner = shelf.new_cleaner(io_bytes_per_second=10_000)
    shelf.clean()
    statistics = shelf.cleaner.statistics
    owed = (statistics.bytes_read + statistics.bytes_written) / 10_000

    assert statistics.bytes_read > 2 * 200 * 61
    assert 0.8 * owed < sum(shelf.slept) <= 1.01 * owed
    assert max(shelf.slept) < owed / 10


def test_others_get_to_run() -> None:
    """Does a cleaner without a rate still rest for a moment, again and again?"""
    shelf = dirty("table-0", 200)
    shelf.slept.clear()
    shelf.clean()

    assert len(shelf.slept) > 5
    assert set(shelf.slept) == {0.0001}


def test_statistics() -> None:
    """Does a round say what it did?"""
    shelf = dirty("table-0", 60)
    shelf.clean()
    statistics = shelf.cleaner.statistics
    active = shelf.log.segments()[-1].base_offset

    assert (statistics.end_offset, statistics.keys, statistics.records_read) == (active, 1, active)
    assert statistics.records_kept == 1
    assert statistics.unreadable_batches == 0
    assert 0 < statistics.bytes_written < statistics.bytes_read


def _names(shelf: Shelf) -> set[str]:
    return {name for name in shelf.files.listdir(f"{DIRECTORY}/{shelf.name}") if name.endswith((".cleaned", ".swap"))}


def _retention(shelf: Shelf) -> None:
    shelf.log.configure(replace(CONFIG, cleanup_delete=True, retention_bytes=0))
    for segment in shelf.log.delete_old_segments(NOW):
        segment.remove()


def _truncation(shelf: Shelf) -> None:
    shelf.log.truncate_to(3)


@pytest.mark.parametrize("change", [_retention, _truncation])
def test_the_log_changes_meanwhile(change: Callable[[Shelf], None]) -> None:
    """Is a group given up, and nothing else, when its segments went away while it was cleaned?"""
    shelf = dirty("table-0", 60)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    groups = shelf.cleaner.clean(plan)
    group = next(groups)
    change(shelf)
    before = shelf.records()

    assert shelf.cleaner.apply(group) == []
    with pytest.raises(CleaningStopped):
        next(groups)
    assert shelf.records() == before
    assert not _names(shelf)
    assert shelf.cleaner.pick([shelf.log], NOW) is None


def test_a_segment_goes_before_it_is_read() -> None:
    """Is a log that lost its segments before the thread came to them simply given up for now?"""
    shelf = dirty("table-0", 60)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    _retention(shelf)
    with pytest.raises(CleaningStopped, match="went away"):
        shelf.run(plan)


def test_stopping() -> None:
    """Does a cleaner that is told to stop give up soon and clear its files away?"""
    shelf = dirty("table-0", 400, replace(CONFIG, segment_bytes=15_000))
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    groups = shelf.cleaner.clean(plan)
    assert shelf.cleaner.apply(next(groups))
    shelf.cleaner.stop()
    with pytest.raises(CleaningStopped, match="told to stop"):
        list(groups)

    assert not _names(shelf)
    check(shelf)


def test_a_group_that_nobody_applies() -> None:
    """Are a group's files removed when its owner walks away?"""
    shelf = dirty("table-0", 60)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    groups = shelf.cleaner.clean(plan)
    next(groups)
    assert _names(shelf)
    groups.close()  # type: ignore[attr-defined]

    assert not _names(shelf)
    assert shelf.clean()


@pytest.mark.parametrize("operation", ["create", "write", "fsync", "read"])
def test_a_disk_that_refuses(operation: str) -> None:
    """Is the log unharmed and open for writes after its cleaning failed, and cleaned some minutes later?"""
    shelf = dirty("table-0", 60)
    plan = shelf.cleaner.pick([shelf.log], NOW)
    assert plan is not None
    before = shelf.records()
    shelf.files.fail_next(operation, errno.ENOSPC)
    with pytest.raises(StorageFault):
        shelf.run(plan)

    assert shelf.records() == before
    assert shelf.log.fault is None
    assert not _names(shelf)
    assert shelf.cleaner.pick([shelf.log], NOW) is None
    assert shelf.clean(NOW + RETRY_MS)
    check(shelf)


def test_rotten_batches_are_kept_and_counted() -> None:
    """Is a batch with a flipped bit copied as it is rather than sealed with a new CRC?"""
    shelf = dirty("table-0", 60)
    shelf.files.flip_bit(f"{DIRECTORY}/table-0/{0:020d}.log", 80)
    shelf.clean()
    first = next(batch for _, _, batch in shelf.log.segments()[0].batches())

    assert shelf.cleaner.statistics.unreadable_batches == 1
    assert read_header(first).base_offset == 0
    assert read_header(first).record_count == 1
