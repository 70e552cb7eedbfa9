"""Does a log take what is appended, roll, and note epochs as its owner expects?"""

import errno
from dataclasses import replace

import pytest

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from unit.storage.samples import CONFIG, Journal, append, batch, fill, open_log, producer, read_all


@pytest.fixture
def log(disk):
    """An empty log on either disk."""
    return open_log(disk.files, f"{disk.root}/t-0")


def bases(log):
    return [segment.base_offset for segment in log.segments()]


def test_offsets_are_dense(log):
    """Does every batch get the next offsets, and say so in its own bytes?"""
    assert append(log, 1, 2, 3, epoch=4) == 0
    assert append(log, 4, epoch=4) == 3
    assert log.log_end_offset == 4

    header = read_header(log.read(3, max_bytes=1000, limit_offset=4).view())

    assert (header.base_offset, header.leader_epoch, header.last_offset) == (3, 4, 3)


def test_roll_by_size(log):
    """Is no segment greater than segment.bytes, unless one batch alone is?"""
    fill(log, 30)
    append(log, 1, size=3000)
    append(log, 1)

    sizes = [segment.size for segment in log.segments()]

    assert all(size <= CONFIG.segment_bytes for size in sizes[:-2])
    assert sizes[-2] > 3000
    assert bases(log)[-2:] == [30, 31]


def test_roll_by_time(disk):
    """Does a batch that is segment.ms later than the first of its segment begin a new one, by the batches' own time?"""
    log = open_log(disk.files, f"{disk.root}/t-0", config=LogConfig(segment_ms=100))
    for timestamp in (1000, 1100, 1101, 900, 1202):
        append(log, timestamp)

    assert bases(log) == [0, 2, 4]

    log.close(0)
    log = open_log(disk.files, f"{disk.root}/t-0", config=LogConfig(segment_ms=100), clean=True)
    append(log, 1302)
    append(log, 1303)

    assert bases(log) == [0, 2, 4, 6]


def test_roll_when_due(log):
    """Is a segment rolled that nothing comes in for, but not an empty one?"""
    log.configure(LogConfig(segment_ms=100))

    assert not log.roll_if_due(1000)

    append(log, 1)

    assert not log.roll_if_due(99)
    assert log.roll_if_due(100)
    assert not log.roll_if_due(100)
    assert bases(log) == [0, 1]


def test_jitter_is_each_segments_own(disk):
    """Do partitions with segment.jitter.ms roll at different times, the same ones every time?"""
    due = []
    for name in ("a-0", "b-0", "a-0"):
        log = open_log(disk.files, f"{disk.root}/{name}", config=LogConfig(segment_ms=1000, segment_jitter_ms=900))
        if not log.log_end_offset:
            append(log, 1)
        due.append(next(now for now in range(2000) if log.roll_if_due(now)) if log.segments()[-1].size else due[0])

    assert due[0] == due[2] != due[1]
    assert all(100 <= when <= 1000 for when in due)


def test_roll_when_an_index_is_full(log):
    """Does a segment end when its index may not grow?"""
    log.configure(LogConfig(index_interval_bytes=1, segment_index_bytes=48))
    fill(log, 20)

    assert bases(log) == [0, 4, 8, 12, 16]


def test_roll_before_an_offset_does_not_fit(memory):
    """Does a follower begin a new segment when an offset is too far from the base for the index?"""
    log = open_log(memory, "/data/t-0", config=LogConfig())
    for offset in (0, 2**31 - 1, 2**31):
        log.append_follower(memoryview(batch(1000, base_offset=offset, leader_epoch=0)), 0)

    assert bases(log) == [0, 2**31]
    assert read_all(log) == [0, 2**31 - 1, 2**31]


def test_a_change_of_settings_counts_at_once(log):
    """Does a smaller segment.bytes roll with the next append?"""
    fill(log, 3)
    log.configure(replace(CONFIG, segment_bytes=100))
    append(log, 1)

    assert bases(log) == [0, 3]


def test_rolling_takes_a_snapshot(disk):
    """Are the producers written down as of the new segment's start?"""
    journal = Journal()
    log = open_log(disk.files, f"{disk.root}/t-0", producers=journal)
    append(log, 1)
    journal.known = [producer(5, 0)]
    log.roll(0)
    again = Journal()
    open_log(disk.files, f"{disk.root}/t-0", producers=again)

    assert again.loaded == [producer(5, 0)]
    assert again.replayed == []


def test_epochs(log):
    """Does the log know which epoch wrote what, and where each ended?"""
    log.assign_epoch(1, 0)
    fill(log, 2)
    for epoch in (1, 1, 4):
        append(log, 1, epoch=epoch)

    assert log.latest_epoch == 4
    assert log.end_offset_for_epoch(1) == (1, 4)
    assert log.end_offset_for_epoch(4) == (4, 5)
    assert log.end_offset_for_epoch(9) == (-1, -1)
    assert log.epoch_at(4) == 4


@pytest.mark.parametrize("operation", ["open", "read", "create", "write"])
@pytest.mark.parametrize("count", [0, 5])
def test_the_first_append_after_a_restart_fails_whole(memory, operation, count):
    """If there is no room for anything on the way of the first append, is the log as before, for the next one too?"""
    log = open_log(memory, "/data/t-0")
    fill(log, count)
    log.close(0)
    log = open_log(memory, "/data/t-0", clean=True)
    memory.fail_next(operation, errno.ENOSPC)
    for _ in range(3):
        try:
            append(log, 1)
        except StorageFault:
            continue
    memory._faults.clear()
    append(log, 1)

    assert read_all(log) == list(range(log.log_end_offset))
    assert read_all(open_log(memory, "/data/t-0")) == list(range(log.log_end_offset))
