"""Logs that are being copied to a log dir: made, opened again, named, taken over, given up."""

from uuid import UUID

import pytest

from headrace.storage.directory_names import future_name
from headrace.storage.log_dir import LogDir
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.offset_checkpoint import read_offsets
from unit.storage.samples import CONFIG, Journal, append, fill, flush, producer, read_all

TOPIC_ID = UUID(int=2**90)
NAME = "a-0"


@pytest.fixture
def root(disk):
    """A log dir's path."""
    return f"{disk.root}/logs"


@pytest.fixture
def log_dir(disk, root):
    """An open log dir."""
    return LogDir.open(disk.files, root)


def begin(log_dir, count=30):
    """A copy with some batches in it."""
    log = log_dir.create_future(NAME, topic_id=TOPIC_ID, config=CONFIG, producers=Journal(), now_ms=0)
    fill(log, count)
    return log


def cut_power(disk):
    """Lose what was not flushed, where the disk can."""
    if isinstance(disk.files, MemoryFiles):
        disk.files.power_cut()


def again(disk, root):
    """The log dir and the copy in it, opened anew."""
    log_dir = LogDir.open(disk.files, root)
    (directory,) = log_dir.future_names()
    return log_dir, log_dir.load_future(directory, config=CONFIG, producers=Journal(), now_ms=0)


def test_copy_is_no_log(disk, root, log_dir):
    """Is a copy in a directory of its own name, not among the logs, and known by the partition's name?"""
    log = begin(log_dir)

    assert (log.name, log.path) == (NAME, f"{root}/{future_name(NAME)}")
    assert log_dir.log_names() == []
    assert log_dir.topic_id(future_name(NAME)) == TOPIC_ID
    assert (log_dir.logs, log_dir.futures) == ({}, {NAME: log})


def test_copy_goes_on_after_a_clean_stop(disk, root, log_dir):
    """Is a copy flushed and closed with the log dir, and opened again without a look at its batches?"""
    begin(log_dir)
    assert log_dir.close(0) == {}
    cut_power(disk)

    log_dir, log = again(disk, root)

    assert log_dir.clean_shutdown
    assert (log.name, log.log_end_offset, log.recovery_point) == (NAME, 30, 30)


def test_copy_goes_on_after_a_power_cut(disk, root, log_dir):
    """Is what was flushed of a copy there after a power cut, by the checkpoint's word, and the rest to copy again?"""
    log = begin(log_dir)
    flush(log)
    log_dir.write_checkpoints()
    fill(log, 5)
    log_dir.abandon()
    cut_power(disk)

    log_dir, log = again(disk, root)

    assert not log_dir.clean_shutdown
    assert log.log_end_offset >= 30 == log.recovery_point
    assert read_offsets(disk.files, f"{root}/recovery-point-offset-checkpoint") == {NAME: 30}


def test_named_copy_is_a_log_of_the_disk(disk, root, log_dir):
    """Is a copy that was named whole under the partition's name, and found there after a power cut?"""
    before = read_all(begin(log_dir))
    log = log_dir.name_future(NAME, producers=Journal(), now_ms=0)

    assert (log.name, log.path, log.log_end_offset, log.recovery_point) == (NAME, f"{root}/{NAME}", 30, 30)
    log.high_watermark = 30
    assert read_all(log) == before
    assert (log_dir.logs, log_dir.futures) == ({}, {NAME: log})
    log_dir.abandon()
    cut_power(disk)
    log_dir = LogDir.open(disk.files, root)
    assert (log_dir.log_names(), log_dir.future_names()) == ([NAME], [])


def test_copy_takes_the_place_of_a_log(disk, root, log_dir):
    """Does a copy that succeeds a log have its producers, marks and latest epoch, and append on?"""
    other = LogDir.open(disk.files, f"{root}-other")
    source = other.create_log(NAME, topic_id=TOPIC_ID, config=CONFIG, producers=Journal(), now_ms=0)
    fill(source, 30)
    source.assign_epoch(7, 30)
    source.high_watermark = 30
    source.advance_start_offset(4)
    log = begin(log_dir)
    known = Journal()
    known.known = [producer(3, 29)]

    log.succeed(source, known)
    log_dir.adopt_future(NAME)

    assert (log_dir.logs, log_dir.futures) == ({NAME: log}, {})
    assert (log.log_start_offset, log.high_watermark, log.latest_epoch) == (4, 30, 7)
    assert log.producers() == known.known
    assert append(log) == 30


def test_copy_is_given_up(disk, root, log_dir):
    """Is nothing of a copy left that was given up, and can one be begun again?"""
    begin(log_dir)
    deleted = log_dir.discard_future(NAME)

    assert log_dir.future_names() == []
    assert [one.path for one in log_dir.deleted_logs()] == [deleted.path]
    assert deleted.path.startswith(f"{root}/{NAME}.")
    deleted.remove()
    assert begin(log_dir, 3).log_end_offset == 3


def test_log_is_set_aside(disk, root, log_dir):
    """Is a log that is set aside kept under another name, and no log any more?"""
    log_dir.create_log(NAME, topic_id=TOPIC_ID, config=CONFIG, producers=Journal(), now_ms=0)
    kept = log_dir.set_aside(NAME)

    assert kept.endswith("-stray")
    assert (log_dir.log_names(), log_dir.logs) == ([], {})
    assert disk.files.stat(kept) is not None
