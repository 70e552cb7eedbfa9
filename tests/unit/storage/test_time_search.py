"""Are records found by time, in any order of timestamps, in any codec, in any segment?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import StorageFault
from headrace.records.batch import read_header, seal
from headrace.storage import time_search
from headrace.storage.memory_files import MemoryFiles
from unit.storage.samples import append, batch, open_log


@pytest.fixture(params=["none", "gzip", "zstd"])
def log(disk, request):
    """Batches of three records with these timestamps, several to a segment."""
    log = open_log(disk.files, f"{disk.root}/t-0")
    for timestamps in ((10, 30, 20), (15, 16, 17), (50, 40, 45), (5, 6, 7), (50, 60, 55)) * 3:
        append(log, *timestamps, codec=request.param, epoch=2)
    return log


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (10, 0, 2)),
        (11, (30, 1, 2)),
        (31, (50, 6, 2)),
        (50, (50, 6, 2)),
        (51, (60, 13, 2)),
        (60, (60, 13, 2)),
        (61, None),
    ],
)
def test_first_at(log, timestamp, expected):
    """Is it the first record by offset that is not before the time?"""
    assert log.offset_for_timestamp(timestamp) == expected


def test_first_at_or_behind_the_start(log):
    """Are records before the log's start not found?"""
    log.advance_start_offset(1)

    assert log.offset_for_timestamp(0) == (30, 1, 2)

    log.advance_start_offset(14)

    assert log.offset_for_timestamp(60) == (60, 28, 2)


def test_latest(log):
    """Is it the first record with the greatest timestamp, from the log's start on?"""
    assert log.offset_of_max_timestamp() == (60, 13, 2)

    log.advance_start_offset(14)

    assert log.offset_of_max_timestamp() == (60, 28, 2)

    log.advance_start_offset(44)

    assert log.offset_of_max_timestamp() == (55, 44, 2)


def test_append_time(disk):
    """Do all records of a batch stamped by the broker have its time: the first found by time, the last the latest?"""
    log = open_log(disk.files, f"{disk.root}/t-0")
    append(log, 1, 2, log_append_time_ms=100)
    append(log, 1, 2, log_append_time_ms=200)

    assert log.offset_for_timestamp(150) == (200, 2, 0)
    assert log.offset_of_max_timestamp() == (200, 3, 0)


def test_empty(disk):
    """Is there nothing to find in an empty log?"""
    log = open_log(disk.files, f"{disk.root}/t-0")

    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), min_size=1, max_size=40), st.integers(0, 50))
def test_like_looking_at_every_record(rows, timestamp):
    """Does the search find what a walk over all records finds?"""
    log = open_log(MemoryFiles(), "/t-0")
    for row in rows:
        append(log, *row)
    records = [(time, offset) for offset, time in enumerate(time for row in rows for time in row)]
    late = [(time, offset, 0) for time, offset in records if time >= timestamp]
    latest = max(records, key=lambda record: (record[0], -record[1]))
    batches_latest = next(row for row in rows if max(row) == latest[0])

    assert log.offset_for_timestamp(timestamp) == (late[0] if late else None)
    assert time_search.latest(log.segments(), 0, 1 << 20) == (*latest, 0)
    assert latest[0] in batches_latest
    assert len(batch(*rows[0])) > 0


def test_harmed_records(memory):
    """Is a batch whose records cannot be read a StorageFault rather than a crash?"""
    log = open_log(memory, "/data/t-0")
    append(log, 5, 6)
    memory.open(log.segments()[0].path()).pwrite(b"\xff" * 8, 61)
    for search in (lambda: log.offset_for_timestamp(5), log.offset_of_max_timestamp):
        with pytest.raises(StorageFault, match="/data/t-0"):
            search()


def test_a_clients_nonsense_is_passed_over(memory):
    """Does a batch with a right CRC and garbage inside leave the search to the others?"""
    log = open_log(memory, "/data/t-0")
    append(log, 5, 6)
    nonsense = batch(7, 8)
    nonsense[61:69] = b"\xff" * 8
    seal(nonsense)
    log.append(memoryview(nonsense), read_header(nonsense), leader_epoch=0, now_ms=0)
    append(log, 6, 7)

    assert log.offset_for_timestamp(7) == (7, 5, 0)
    assert log.offset_of_max_timestamp() == (7, 5, 0)
