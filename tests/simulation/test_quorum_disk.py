"""The disk under a simulated replica: it loses what real disks lose, and nothing else."""

import random

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.sim.quorum_disk import Entry, QuorumDisk, Snapshot


def entries(epoch, *values):
    return [Entry(epoch, value) for value in values]


@given(seed=st.integers(0, 1000))
def test_flushed_records_survive(seed):
    """Is after a crash everything there that was flushed, and of the rest a part from the front?"""
    disk = QuorumDisk(None, None)
    disk.append(entries(1, 1, 2, 3))
    disk.flush(2, 0)
    disk.append(entries(1, 4, 5))
    disk.crash(random.Random(seed))

    values = [entry.value for entry in disk.entries]
    assert [1, 2, 3, 4, 5][: len(values)] == values
    assert len(values) >= 2


@given(seed=st.integers(0, 1000))
def test_a_truncation_is_undone_whole_or_not_at_all(seed):
    """Is the old tail back without anything written since, or gone?"""
    disk = QuorumDisk(None, None)
    disk.append(entries(1, 1, 2, 3))
    disk.flush(3, 0)
    disk.truncate(1)
    disk.append(entries(2, 9))
    disk.flush(2, 0)
    assert disk.flushed == 1, "that flush began before the truncation"
    disk.crash(random.Random(seed))

    assert [entry.value for entry in disk.entries] in ([1, 2, 3], [1], [1, 9])


def test_a_crash_between_snapshot_and_log():
    """Does a log that ends before its newest snapshot start again behind it?"""
    disk = QuorumDisk(None, None)
    disk.append(entries(1, 1, 2))
    disk.snapshots[OffsetAndEpoch(7, 3)] = Snapshot(5, None)
    mirror = disk.open()

    assert (7, 7, 3) == (mirror.start_offset, mirror.end_offset, mirror.last_epoch)


def test_reading_keeps_epochs_apart():
    """Does a batch have one epoch?"""
    disk = QuorumDisk(None, None)
    disk.append(entries(1, 1, 2) + entries(2, 3))

    assert [(0, 2, 1), (2, 1, 2)] == [(batch.base_offset, batch.count, batch.epoch) for batch in disk.read(0, 10)]
    assert [(1, 1, 1)] == [(batch.base_offset, batch.count, batch.epoch) for batch in disk.read(1, 1)]
