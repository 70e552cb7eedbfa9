"""The log cleaner over whole logs: what it picks, what it leaves, what it never touches."""

import errno
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from headrace.cores.producers import ProducerStates
from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.compression import CODEC_NAMES
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.records.walk import walk
from headrace.storage.cleaner import RETRY_MS, Cleaner, CleanerLimits, CleaningPlan, CleaningStopped
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.offset_checkpoint import CLEANER_OFFSETS, read_offsets

DIRECTORY = "/data"
DAY = 86_400_000
NOW = 1_700_000_000_000
CONFIG = LogConfig(
    cleanup_compact=True, cleanup_delete=False, segment_bytes=600, index_interval_bytes=100, delete_retention_ms=DAY
)

Kept = dict[int, tuple[int, bytes | None, bytes | None]]


class Shelf:
    """One compacted log in memory, what was ever written to it, and its cleaner."""

    def __init__(self, config: LogConfig = CONFIG, name: str = "table-0", files: MemoryFiles | None = None) -> None:
        self.files = files or MemoryFiles()
        self.name = name
        self.producers = ProducerStates()
        self.written: Kept = {}
        self.slept: list[float] = []
        self.log = self.open(config, recovery_point=0)
        self.cleaner = self.new_cleaner()

    def open(self, config: LogConfig, *, recovery_point: int) -> Log:
        """Open the log as after a crash."""
        self.producers = ProducerStates()
        return Log.open(
            self.files,
            f"{DIRECTORY}/{self.name}",
            config=config,
            now_ms=NOW,
            clean_shutdown=False,
            recovery_point=recovery_point,
            log_start_offset=0,
            producers=self.producers,
        )

    def new_cleaner(self, **limits: Any) -> Cleaner:
        """A cleaner as the broker has one, with a clock of its own."""
        return Cleaner(self.files, DIRECTORY, sleep=self.slept.append, limits=CleanerLimits(**limits))

    def put(self, *pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW, **options: Any) -> int:
        """Append one batch of keys and values."""
        batch = build_batch([NewRecord(timestamp, key, value) for key, value in pairs], **options)
        return self.append(batch)

    def append(self, batch: bytearray) -> int:
        """Append one batch as the leader does."""
        header = read_header(batch)
        offset = self.log.append(memoryview(batch), header, leader_epoch=1, now_ms=NOW)
        aborted = self.producers.replay(read_header(batch), memoryview(batch))
        if aborted is not None:
            self.log.note_aborted(aborted)
        if not header.is_control:
            self.written |= {r.offset: (r.timestamp, _bytes(r.key), _bytes(r.value)) for r in walk(batch)}
        return offset

    def settle(self) -> None:
        """Flush, and let everything be committed."""
        job = self.log.flush_job()
        if job is not None:
            job.run()
            self.log.flushed(job)
        self.log.high_watermark = self.log.log_end_offset
        self.producers.advance(self.log.high_watermark)

    def fill(self, chance: Random, batches: int, *, keys: int = 12, producers: int = 3) -> None:
        """Random batches of a few keys in all codecs, some of them tombstones, by several producers."""
        for _ in range(batches):
            pairs = [
                (
                    b"k%d" % chance.randrange(keys),
                    None if chance.random() < 0.2 else chance.randbytes(chance.randrange(60)),
                )
                for _ in range(chance.randint(1, 4))
            ]
            producer_id = chance.randrange(producers + 1) - 1
            known = {entry.producer_id: entry for entry in self.producers.entries()}.get(producer_id)
            options: dict[str, Any] = {}
            if producer_id >= 0:
                sequence = known.batches[-1].last_sequence + 1 if known else 0
                options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            self.put(*pairs, timestamp=NOW + chance.randrange(1_000), codec=chance.choice(CODEC_NAMES), **options)

    def records(self) -> Kept:
        """Every record in the log, by offset."""
        found: Kept = {}
        for segment in self.log.segments():
            for _, _, batch in segment.batches():
                found |= {r.offset: (r.timestamp, _bytes(r.key), _bytes(r.value)) for r in walk(batch)}
        return found

    def clean(self, now_ms: int = NOW) -> bool:
        """Pick, clean and apply, as often as there is something to do; False if there never was."""
        count = 0
        while (plan := self.cleaner.pick([self.log], now_ms)) is not None:
            self.run(plan)
            count += 1
            assert count < 50, "the cleaner makes no progress"
        return count > 0

    def run(self, plan: CleaningPlan) -> None:
        """One round."""
        for group in self.cleaner.clean(plan):
            for segment in self.cleaner.apply(group):
                segment.remove()


def _bytes(view: memoryview | None) -> bytes | None:
    return None if view is None else bytes(view)


def state(records: Kept) -> dict[bytes | None, bytes]:
    """What a reader of all records knows in the end."""
    table: dict[bytes | None, bytes] = {}
    for offset in sorted(records):
        _, key, value = records[offset]
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return table


def check(shelf: Shelf) -> None:
    """What must be true of a log whatever its cleaner did."""
    kept = shelf.records()

    assert kept.items() <= shelf.written.items()
    assert state(kept) == state(shelf.written)
    segments = shelf.log.segments()
    for segment, following in pairwise(segments):
        last = [last_offset for _, _, last_offset, _ in segment.outlines()][-1]
        assert last + 1 == following.base_offset, "recovery would take this gap for lost data"


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


# What is picked


def dirty(name: str, batches: int, config: LogConfig = CONFIG, files: MemoryFiles | None = None) -> Shelf:
    """A log with so many batches of one key, settled."""
    shelf = Shelf(config, name, files)
    for _ in range(batches):
        shelf.put((b"k", b"x" * 50))
    shelf.settle()
    return shelf


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
    shelf.log.config = replace(CONFIG, min_cleanable_dirty_ratio=0.9)
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
    shelf.log.config = replace(CONFIG, segment_bytes=10_000)
    shelf.clean()
    path = f"{DIRECTORY}/table-0/{0:020d}.txnindex"

    assert len(before) == 4
    assert shelf.log.aborted_transactions(0, shelf.log.log_end_offset) == before
    assert len(shelf.files.read(path)) == 4 * 34

    shelf.cleaner.truncated("table-0", 0)
    shelf.clean(NOW + 1)

    assert shelf.log.aborted_transactions(0, shelf.log.log_end_offset) == []
    assert shelf.files.stat(path) is None


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
    shelf.log.config = replace(CONFIG, cleanup_delete=True, retention_bytes=0)
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
