"""A flush makes durable what was written when it was made, or breaks the log for good."""

import pytest

from headrace.model.errors import StorageFault
from unit.storage.samples import append, open_log


def test_a_job_covers_what_was_there_when_it_was_made(disk):
    """Does a batch that came after the job was made wait for the next one?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    append(log)
    job = log.flush_job()
    append(log)

    job.run()
    log.flushed(job)

    assert (log.recovery_point, log.log_end_offset) == (1, 2)


def test_what_was_flushed_survives_a_power_cut(memory):
    """Is everything below the recovery point there after the power went, over rolled segments too?"""
    log = open_log(memory, "/data/t-0")
    for _ in range(30):
        append(log, size=100)
    assert len(log.segments()) > 1
    job = log.flush_job()
    job.run()
    log.flushed(job)
    append(log)

    memory.power_cut()

    assert open_log(memory, "/data/t-0", recovery_point=30).log_end_offset == 30


def test_a_failed_flush_is_final(memory):
    """Does a log whose flush failed refuse appends and further flushes, though the disk would take them?"""
    log = open_log(memory, "/data/t-0")
    append(log)
    memory.fail_next("fsync")

    with pytest.raises(StorageFault, match="flush failed"):
        log.flush_job().run()
    with pytest.raises(StorageFault):
        append(log)
    with pytest.raises(StorageFault):
        log.flush_job()
    assert log.recovery_point == 0


def test_nothing_to_flush(disk):
    """Is there no job when everything is on the disk?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    append(log)
    job = log.flush_job()
    job.run()
    log.flushed(job)

    assert log.flush_job() is None
