"""A log whose disk fails it, and what a flush makes safe."""

import errno
from random import Random

import pytest

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.storage.flush_job import FlushJob
from unit.storage.samples import CONFIG, append, batch, fill, flush, open_log, read_all


@pytest.fixture
def log(disk):
    """An empty log on either disk."""
    return open_log(disk.files, f"{disk.root}/t-0")


def bases(log):
    return [segment.base_offset for segment in log.segments()]


# Faults


def test_a_full_disk(memory):
    """Is an append that finds no room refused with the log unchanged, and does it work again when there is room?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 3)
    for room in (0, 10, 50):
        memory.capacity = memory.used + room
        with pytest.raises(StorageFault, match="No space"):
            append(log, 1)

        assert log.log_end_offset == 3
        assert log.fault is None
        assert read_all(log) == [0, 1, 2]

    memory.capacity = 1 << 30

    assert append(log, 1) == 3
    assert read_all(log) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_failed_write_left_does_not_come_back(memory, seed):
    """After a clean stop and a power cut, is no part of a batch there whose write was undone?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 3)
    flush(log)
    memory.capacity = memory.used + 60
    with pytest.raises(StorageFault):
        append(log, 1)
    memory.capacity = 1 << 30
    log.close(0)
    memory.power_cut(Random(seed))

    assert read_all(open_log(memory, "/data/t-0", clean=True)) == [0, 1, 2]


@pytest.mark.parametrize("path", [".log", ".index", ".timeindex", ".snapshot"])
def test_no_room_to_roll(memory, path):
    """Is a roll that fails at any file no roll at all, and does a later one succeed?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 9)
    count = len(log.segments())
    while log.segments()[-1].size + len(batch()) <= CONFIG.segment_bytes:
        append(log, 1)
    end_offset = log.log_end_offset
    memory.fail_next("create", errno.ENOSPC, path_contains=path)
    with pytest.raises(StorageFault, match="cannot roll"):
        append(log, 1)

    assert log.log_end_offset == end_offset
    assert len(log.segments()) == count

    append(log, 1)

    assert len(log.segments()) == count + 1
    assert read_all(open_log(memory, "/data/t-0")) == list(range(end_offset + 1))


@pytest.mark.parametrize(("operation", "path"), [("write", ".log"), ("create", ".timeindex")])
def test_a_disk_that_failed_a_write_is_not_just_full(memory, operation, path):
    """Does a log whose write or roll met a broken disk take nothing more, and read on what was flushed?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 2)
    flush(log)
    while operation == "create" and log.segments()[-1].size + len(batch()) <= CONFIG.segment_bytes:
        append(log, 1)
    end_offset = log.log_end_offset
    memory.fail_next(operation, errno.EIO, path_contains=path)
    for _ in range(2):
        with pytest.raises(StorageFault, match="Input/output"):
            append(log, 1)

    assert "Input/output" in log.fault
    assert log.log_end_offset == end_offset
    assert log.read(0, max_bytes=999, limit_offset=2).end_offset == 2


def test_a_write_that_cannot_be_undone_breaks_the_log(memory):
    """Does the log take nothing more, and read only what was flushed?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 2)
    flush(log)
    append(log, 1)
    memory.capacity = memory.used + 10
    memory.fail_next("truncate")
    with pytest.raises(StorageFault, match="cannot be undone"):
        append(log, 1)
    memory.capacity = 1 << 30
    for refused in (lambda: append(log, 1), log.flush_job, lambda: log.roll(0), lambda: log.truncate_to(0)):
        with pytest.raises(StorageFault, match="cannot be undone"):
            refused()

    assert log.read(0, max_bytes=999, limit_offset=3).end_offset == 2
    with pytest.raises(StorageFault, match="cannot be undone"):
        log.read(2, max_bytes=999, limit_offset=3)


@pytest.mark.parametrize("operation", ["fsync", "fsync_dir"])
def test_a_failed_flush_breaks_the_log(memory, operation):
    """Is nothing flushed, appended or promised after a flush that failed, though the next one would succeed?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 2)
    job = log.flush_job()
    memory.fail_next(operation)
    with pytest.raises(StorageFault, match="flush failed"):
        job.run()

    assert log.recovery_point == 0
    assert "flush failed" in log.fault
    with pytest.raises(StorageFault):
        log.flush_job()
    with pytest.raises(StorageFault):
        append(log, 1)
    with pytest.raises(StorageFault):
        log.close(0)


def test_a_read_error(memory):
    """Is a disk that cannot read a StorageFault, not an OSError?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 5)
    for read in (
        lambda: log.read(2, max_bytes=99, limit_offset=5),
        lambda: log.read(0, max_bytes=99, limit_offset=5).view(),
        lambda: log.read(0, max_bytes=99, limit_offset=5).load(),
        lambda: log.offset_for_timestamp(1002),
        log.offset_of_max_timestamp,
    ):
        log._positions.clear()
        memory.fail_next("read")
        with pytest.raises(StorageFault, match="Input/output"):
            read()
        memory._faults.clear()


# Flushing


def test_flushing_moves_the_recovery_point(log):
    """Does it move to where the log ended when the job was made, and is there then nothing more to flush?"""
    fill(log, 2)
    job = log.flush_job()
    append(log, 1)

    assert isinstance(job, FlushJob)
    assert job.end_offset == 2

    job.run()
    log.flushed(job)

    assert log.recovery_point == 2

    flush(log)

    assert log.recovery_point == 3
    assert log.flush_job() is None


def test_what_is_flushed_survives(memory):
    """Is everything below the recovery point there after a power cut, over segments and all?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 40)
    flush(log)
    append(log, 1)
    memory.power_cut()
    log = open_log(memory, "/data/t-0")

    assert read_all(log) == list(range(40))
    assert log.latest_epoch == 0


def test_rolled_segments_are_flushed_before_the_active_one(memory):
    """Is the order of flushes the order of offsets, so that what is durable is a prefix?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 30)
    flushed = []
    memory.before = lambda operation, path: flushed.append(path[-24:]) if operation == "fsync" else None
    flush(log)
    logs = [path for path in flushed if path.endswith(".log")]

    assert logs == [f"{base:020d}.log" for base in bases(log)]


def test_a_truncation_makes_a_flush_stale(log):
    """Does a flush that was under way not count when the log was truncated and grew again meanwhile?"""
    fill(log, 5)
    job = log.flush_job()
    job.run()
    log.truncate_to(2)
    fill(log, 5)
    log.flushed(job)

    assert log.recovery_point <= 2


def test_a_flush_of_what_was_truncated_meanwhile(log):
    """Is a flush that finds its segments gone no failure?"""
    fill(log, 40)
    job = log.flush_job()
    log.truncate_to(3)
    job.run()
    log.flushed(job)

    assert log.fault is None
    assert log.recovery_point <= 3
    assert read_all(log) == [0, 1, 2]


def test_a_flush_whose_files_somebody_took(memory):
    """Is a flush that finds files gone which nobody removed through the log a failure?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 40)
    job = log.flush_job()
    memory.unlink(log.segments()[0].path(".index"))
    with pytest.raises(StorageFault, match="flush failed"):
        job.run()


def test_only_new_entries_are_written_in_batches(memory):
    """Do many index entries go to the file with a flush, and the rest with the roll?"""
    log = open_log(memory, "/data/t-0", config=LogConfig(index_interval_bytes=1))
    fill(log, 300)
    flush(log)

    assert memory.read("/data/t-0/00000000000000000000.index") == b""

    fill(log, 300)
    flush(log)

    assert len(memory.read("/data/t-0/00000000000000000000.index")) == 599 * 8

    fill(log, 10)
    log.roll(0)

    assert memory.read("/data/t-0/00000000000000000000.index") == log.segments()[0].offset_index.encode()
