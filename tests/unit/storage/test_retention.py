"""Does a log give up what its settings no longer keep, and nothing else?"""

from dataclasses import replace

import pytest

from headrace.model.log_config import LogConfig
from headrace.storage import retention
from unit.storage.samples import CONFIG, append, batch, fill, open_log, read_all

SIZE = len(batch())
PER_SEGMENT = CONFIG.segment_bytes // SIZE


@pytest.fixture
def log(disk):
    """Four segments and a bit, with timestamps from 1000 on, a millisecond a batch."""
    log = open_log(disk.files, f"{disk.root}/t-0")
    fill(log, 4 * PER_SEGMENT + 2)
    return log


def starts_after(log, *, now_ms=0, **settings):
    log.configure(replace(CONFIG, **settings))
    log.delete_old_segments(now_ms)
    return log.log_start_offset


def test_by_time(log):
    """Do segments go whose latest record is older than retention.ms?"""
    last_of_second = 1000 + 2 * PER_SEGMENT - 1

    assert starts_after(log, now_ms=last_of_second + 100, retention_ms=100) == PER_SEGMENT
    assert starts_after(log, now_ms=last_of_second + 101, retention_ms=100) == 2 * PER_SEGMENT
    assert read_all(log) == list(range(2 * PER_SEGMENT, 4 * PER_SEGMENT + 2))


def test_all_too_old(log):
    """If even the active segment is too old, does the log end up empty at the same offset?"""
    end_offset = log.log_end_offset

    assert starts_after(log, now_ms=10**9, retention_ms=100) == end_offset
    assert (log.size_bytes, log.log_end_offset, len(log.segments())) == (0, end_offset, 1)
    assert starts_after(log, now_ms=10**9, retention_ms=100) == end_offset
    assert append(log, 1) == end_offset


def test_by_size(log):
    """Do so many segments go that what is left is still at least retention.bytes?"""
    total = log.size_bytes

    assert starts_after(log, retention_bytes=total) == 0
    assert starts_after(log, retention_bytes=total - PER_SEGMENT * SIZE + 1) == 0
    assert starts_after(log, retention_bytes=total - PER_SEGMENT * SIZE) == PER_SEGMENT
    assert starts_after(log, retention_bytes=3 * SIZE) == 3 * PER_SEGMENT


def test_without_limits(log):
    """Is nothing deleted where nothing says so, or the topic is only compacted?"""
    assert starts_after(log, now_ms=10**9) == 0
    assert starts_after(log, now_ms=10**9, retention_ms=1, retention_bytes=0, cleanup_delete=False) == 0


def test_before_the_start(log):
    """Do segments go that lie wholly before the log's start, compacted topics' too?"""
    log.advance_start_offset(2 * PER_SEGMENT - 1)

    assert starts_after(log, cleanup_delete=False) == 2 * PER_SEGMENT - 1
    assert log.segments()[0].base_offset == PER_SEGMENT


def test_never_past_the_high_watermark(log):
    """Does what is not committed stay, however old?"""
    log.high_watermark = 2 * PER_SEGMENT + 1

    assert starts_after(log, now_ms=10**9, retention_ms=1) == 2 * PER_SEGMENT


def test_records_without_timestamps(memory):
    """Are they as old as their file?"""
    memory.now_ms = 5000
    log = open_log(memory, "/data/t-0")
    append(log, -1)
    log.roll(0)

    assert starts_after(log, now_ms=5100, retention_ms=100) == 0
    assert starts_after(log, now_ms=5101, retention_ms=100) == 1


def test_deleting_is_a_rename_and_then_a_removal(disk, log):
    """Are files hidden at once and removed when asked, while a reader keeps what it has?"""
    span = log.read(0, max_bytes=999, limit_offset=log.log_end_offset)
    view = span.view()
    then = bytes(view)
    log.configure(replace(CONFIG, retention_bytes=3 * PER_SEGMENT * SIZE))
    (deleted,) = log.delete_old_segments(0)
    hidden = [name for name in disk.files.listdir(log.path) if name.endswith(".deleted")]

    assert sorted(hidden) == [f"{0:020d}{kind}.deleted" for kind in (".index", ".log", ".timeindex")]
    assert (deleted.base_offset, deleted.end_offset, deleted.size) == (0, PER_SEGMENT, PER_SEGMENT * SIZE)
    assert span.load() == then

    deleted.remove()

    assert not [name for name in disk.files.listdir(log.path) if name.endswith(".deleted")]
    assert bytes(view) == then


def test_epochs_follow_the_start(log):
    """Do leader epochs begin where the log does?"""
    append(log, 1, epoch=3)
    starts_after(log, retention_bytes=3 * PER_SEGMENT * SIZE)

    assert log.end_offset_for_epoch(0) == (0, 4 * PER_SEGMENT + 2)
    assert log._epochs.entries()[0] == (0, PER_SEGMENT)


def test_the_choice_is_a_prefix(log):
    """Does a segment that must stay keep those behind it?"""
    segments = log.segments()
    segments[1]._max_timestamp = 10**12
    doomed = retention.expired(
        segments,
        LogConfig(retention_ms=10),
        now_ms=10**6,
        log_start_offset=0,
        limit_offset=log.log_end_offset,
        log_end_offset=log.log_end_offset,
    )

    assert doomed == segments[:1]
