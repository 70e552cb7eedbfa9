"""Does a log read, follow a leader, truncate, close and open again as its owner expects?"""

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.storage import readable_log
from headrace.storage.span import Span
from unit.storage.samples import Journal, append, batch, fill, flush, open_log, producer, read_all


@pytest.fixture
def log(disk):
    """An empty log on either disk."""
    return open_log(disk.files, f"{disk.root}/t-0")


def bases(log):
    return [segment.base_offset for segment in log.segments()]


# Reading


def test_everything_reads_back(log):
    """Is the whole log read, segment by segment, whatever is asked for at a time?"""
    fill(log, 60)

    assert len(bases(log)) > 3
    for max_bytes in (1, 100, 300, 10_000):
        assert read_all(log, max_bytes=max_bytes) == list(range(60))


def test_any_offset_of_a_batch_brings_the_whole_batch(log):
    """Does a read from inside a batch begin with that batch?"""
    append(log, 1)
    append(log, 1, 2, 3)
    span = log.read(2, max_bytes=1000, limit_offset=4)

    assert (span.base_offset, span.end_offset) == (1, 4)
    assert read_header(span.view()).base_offset == 1


def test_the_first_batch_may_be_too_big(log):
    """Does the first batch come whole although it is too big, unless the caller says no?"""
    fill(log, 3)
    span = log.read(0, max_bytes=1, limit_offset=3)

    assert (span.base_offset, span.end_offset) == (0, 1)
    assert log.read(0, max_bytes=1, limit_offset=3, at_least_one=False).size == 0


def test_nothing_at_or_behind_the_limit(log):
    """Do reads stop before the limit, be it at a batch's start or inside one?"""
    fill(log, 3)
    append(log, 1, 2, 3)
    for _ in range(2):
        assert log.read(0, max_bytes=9999, limit_offset=2).end_offset == 2
        assert log.read(0, max_bytes=9999, limit_offset=4).end_offset == 3
        assert log.read(3, max_bytes=9999, limit_offset=4).size == 0
        assert log.read(2, max_bytes=9999, limit_offset=2).size == 0
    span = log.read(0, max_bytes=9999, limit_offset=4)

    assert [read_header(span.view(), i).base_offset for i in range(0, span.size, span.size // 3)] == [0, 1, 2]


def test_out_of_range(log):
    """Is an offset before the start or behind the end refused, and the end itself just empty?"""
    fill(log, 3)
    for offset in (-1, 4, 2**62):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, max_bytes=100, limit_offset=3)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    span = log.read(3, max_bytes=100, limit_offset=3)

    assert (span.size, span.end_offset, bytes(span.view()), span.load(), span.resident()) == (0, 3, b"", b"", True)


def test_load_is_view(log):
    """Does loading in a thread give the bytes that viewing gives?"""
    fill(log, 5)
    span = log.read(1, max_bytes=200, limit_offset=5)

    assert isinstance(span, Span)
    assert span.load() == bytes(span.view())
    assert len(span.load()) == span.size


def test_a_reader_that_follows_needs_no_search(disk, monkeypatch):
    """Is a reader at the log's end served without looking at the index again?"""
    log = open_log(disk.files, f"{disk.root}/t-0", config=LogConfig())
    append(log, 1)
    offset = log.read(0, max_bytes=999, limit_offset=1).end_offset
    monkeypatch.setattr(type(log), "_find", None)
    for i in range(5):
        append(log, i)
        offset = log.read(offset, max_bytes=999, limit_offset=log.log_end_offset).end_offset

    assert offset == 6


def test_few_segments_stay_open(log):
    """Do segments behind the active one give up their descriptors, and read well all the same?"""
    fill(log, 100)
    read_all(log)
    opened = [segment for segment in log.segments()[:-1] if segment._file is not None]

    assert len(opened) == readable_log._OPEN_SEGMENTS_MAX
    assert read_all(log) == list(range(100))


# Following


def test_a_follower_keeps_the_leaders_offsets(log):
    """Are batches appended as numbered, gaps included, their epochs and producers noted?"""
    journal = Journal()
    log._producers = journal
    parts = [batch(1, base_offset=0, leader_epoch=0), batch(1, 2, base_offset=5, leader_epoch=2)]

    assert log.append_follower(memoryview(b"".join(parts)), 0) == 7
    assert read_all(log) == [0, 5]
    assert log.read(2, max_bytes=999, limit_offset=7).base_offset == 5
    assert log.end_offset_for_epoch(0) == (0, 5)
    assert journal.replayed == [0, 5]


def test_a_follower_refuses_what_does_not_follow(log):
    """Is a batch from before the log's end, or with a bad CRC, refused?"""
    fill(log, 3)
    with pytest.raises(KafkaError) as refused:
        log.append_follower(memoryview(batch(1, base_offset=2, leader_epoch=0)), 0)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    broken = batch(1, base_offset=3, leader_epoch=0)
    broken[-1] ^= 1
    with pytest.raises(KafkaError) as refused:
        log.append_follower(memoryview(broken), 0)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 3


@pytest.mark.parametrize("offset", [39, 30, 22, 1])
def test_truncating(disk, offset):
    """Is everything from the offset on gone, in memory and on disk, and does the log go on from there?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    fill(log, 40)
    flush(log)
    log.truncate_to(offset)

    assert (log.log_end_offset, log.recovery_point, log.high_watermark) == (offset, offset, offset)
    assert read_all(log) == list(range(offset))
    assert read_all(open_log(disk.files, f"{disk.root}/t-0")) == list(range(offset))

    append(log, 5000)

    assert read_all(log) == list(range(offset + 1))
    assert log.offset_for_timestamp(5000) == (5000, offset, 0)


def test_truncating_inside_a_batch(log):
    """Does a batch go whole when the offset lies inside it?"""
    append(log, 1)
    append(log, 1, 2, 3)
    log.truncate_to(2)

    assert log.log_end_offset == 1


def test_truncating_nothing(log):
    """Does an offset at or behind the end change nothing?"""
    fill(log, 3)
    log.truncate_to(3)
    log.truncate_to(9)

    assert read_all(log) == [0, 1, 2]


def test_truncating_fully(disk):
    """Does the log begin again, empty, at the offset, for good?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    fill(log, 40)
    log.truncate_fully(100)

    assert (log.log_start_offset, log.log_end_offset, log.size_bytes, log.latest_epoch) == (100, 100, 0, -1)
    assert append(log, 1) == 100
    assert read_all(open_log(disk.files, f"{disk.root}/t-0", log_start_offset=100)) == [100]


def test_truncation_brings_producers_back_in_line(disk):
    """Is producer state rebuilt from what is left?"""
    journal = Journal()
    log = open_log(disk.files, f"{disk.root}/t-0", producers=journal)
    for i in range(5):
        append(log, i, producer_id=1, producer_epoch=0, base_sequence=i)
    journal.known = [producer(1, 4)]
    log.truncate_to(3)

    assert journal.loaded == []
    assert journal.replayed == [0, 1, 2]


# Opening and closing


def test_closing_and_opening(disk):
    """Is everything there after a clean stop, without a look at more than the last batches?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    for i in range(40):
        append(log, 1000 + i, epoch=i // 20)
    log.close(0)
    log = open_log(disk.files, f"{disk.root}/t-0", clean=True)

    assert (log.recovery_point, log.log_end_offset, log.latest_epoch) == (40, 40, 1)
    assert read_all(log) == list(range(40))
    assert log.flush_job() is None
    assert log.offset_of_max_timestamp() == (1039, 39, 1)


def test_an_idle_log_is_cheap_to_open_and_close(memory):
    """Does a clean restart of an idle log write nothing and keep no file open?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 40)
    log.close(0)
    memory.calls.clear()
    log = open_log(memory, "/data/t-0", clean=True)
    log.assign_epoch(0, 40)
    log.close(0)

    assert memory.calls["write"] == memory.calls["fsync"] == memory.calls["create"] == 0
    assert memory.calls.total() < 30


def test_a_closed_log_does_not_hold_its_files(disk):
    """Are descriptors, maps and indexes let go?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    fill(log, 40)
    log.close(0)

    assert all(segment._file is None and segment._offset_index is None for segment in log.segments())


def test_a_limit_inside_a_batch_is_no_boundary(log):
    """Does a read at an offset that was once a limit inside a batch still name the batch's own base offset?"""
    append(log, 1)
    append(log, 1, 2, 3)
    log.read(0, max_bytes=999, limit_offset=3)

    assert log.read(3, max_bytes=999, limit_offset=4).base_offset == 1
