"""Where two logs part, by leader epochs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.replication.epochs import check_leader_epoch, diverging_epoch, truncation_offset
from headrace.cores.replication.messages import EpochEnd
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.sim.replication_log import Record, SimulatedLog
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles


@pytest.mark.parametrize(
    ("asked", "error"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH), (5, None), (-1, None)]
)
def test_check_leader_epoch(asked, error):
    """Is an older epoch fenced, a newer one unknown, and none at all let through?"""
    if error is None:
        check_leader_epoch(asked, 5)
    else:
        with pytest.raises(KafkaError) as refused:
            check_leader_epoch(asked, 5)
        assert refused.value.code == error


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        pytest.param(4, 2, None, id="level"),
        pytest.param(2, 1, None, id="behind, the same so far"),
        pytest.param(0, -1, None, id="empty"),
        pytest.param(3, 1, EpochEnd(1, 2), id="longer in an old epoch"),
        pytest.param(6, 2, EpochEnd(2, 4), id="longer in the current epoch"),
    ],
)
def test_diverging_epoch(offset, last_epoch, expected):
    """Does a leader with records of epochs 1 1 2 2 find where a follower parted from it?"""
    assert diverging_epoch(log_of(1, 1, 2, 2), offset, last_epoch) == expected


def test_unknown_epoch_below():
    """Is an epoch that we never saw answered with the greatest one below it?"""
    assert diverging_epoch(log_of(1, 1, 4, 4), 3, 3) == EpochEnd(1, 2)


@pytest.mark.parametrize(("offset", "last_epoch"), [(5, -1), (1, 9)], ids=["beyond the end", "newer than all"])
def test_out_of_range(offset, last_epoch):
    """Is a position refused that is beyond us, or of an epoch whose end nobody here knows?"""
    with pytest.raises(KafkaError) as refused:
        diverging_epoch(log_of(1, 1, 2, 2), offset, last_epoch)

    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_out_of_range_before_divergence():
    """Is a follower that ends before our start told that it is out of range, whatever its epoch?"""
    log = log_of(1, 1, 2, 2)
    log.advance_start(3)

    with pytest.raises(KafkaError) as refused:
        diverging_epoch(log, 1, 1)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("ours", "leader", "expected"),
    [
        pytest.param((1, 1, 2, 2, 2), EpochEnd(2, 4), 4, id="leader has less of the epoch"),
        pytest.param((1, 1, 2), EpochEnd(1, 2), 2, id="leader does not know our last epoch"),
        pytest.param((1, 1, 3), EpochEnd(2, 9), 2, id="we do not know the leader's epoch: keep what is below it"),
        pytest.param((2, 2), EpochEnd(1, 5), 0, id="all we have is newer"),
        pytest.param((1, 1), EpochEnd(1, 9), 2, id="leader has more"),
        pytest.param((1, 1), EpochEnd(7, 1), 1, id="the leader's epoch is newer than all of ours"),
    ],
)
def test_truncation_offset(ours, leader, expected):
    """Does a follower keep exactly what it may have in common with the leader?"""
    assert truncation_offset(log_of(*ours), leader) == expected


def log_of(*epochs):
    """A log with one record for each epoch given."""
    log = SimulatedLog()
    for sequence, epoch in enumerate(epochs):
        log.append(Record(epoch, 0, sequence))
    return log


def settle(leader, follower):
    """Let a follower truncate until the two logs agree; answers how often it had to."""
    for rounds in range(20):
        end = follower.log_end_offset
        diverging = diverging_epoch(leader, end, follower.epoch_at(end - 1) if end else -1)
        if diverging is None:
            return rounds
        follower.truncate_to(truncation_offset(follower, diverging))
    pytest.fail("the two logs never agree")


@pytest.mark.parametrize(
    ("leader", "follower", "common"),
    [
        ((1, 1, 4, 4), (1, 1, 2, 2, 3, 3), 2),
        ((1, 2, 4, 6), (1, 2, 3, 3, 5), 2),
        ((1, 1, 1), (1, 1, 1, 2), 3),
        ((2, 4, 6, 8), (1, 3, 5, 7), 0),
    ],
)
def test_quick_elections(leader, follower, common):
    """Do logs that parted more than once find what they have in common (KAFKA-6361)?"""
    ours, theirs = log_of(*follower), log_of(*leader)
    theirs.assign_epoch(9, theirs.log_end_offset)
    settle(theirs, ours)

    assert ours.log_end_offset == common
    assert ours.read(0, common) == [Record(epoch, 0, at) for at, epoch in enumerate(leader[:common])]


@given(
    common=st.lists(st.integers(1, 4).map(lambda epoch: 2 * epoch), max_size=6).map(sorted),
    leader=st.lists(st.integers(4, 9).map(lambda epoch: 2 * epoch), max_size=6).map(sorted),
    follower=st.lists(st.integers(4, 9).map(lambda epoch: 2 * epoch + 1), max_size=6).map(sorted),
)
def test_exactly_what_is_common_is_kept(common, leader, follower):
    """Is, however two logs parted, exactly their common part kept, in finitely many rounds?"""
    ours, theirs = log_of(*common, *follower), log_of(*common, *leader)
    theirs.assign_epoch(99, theirs.log_end_offset)
    settle(theirs, ours)

    assert ours.log_end_offset == len(common)


def test_the_real_log_fits():
    """Do the rules work on the log that brokers have, too?"""
    files = MemoryFiles()
    files.mkdir("/data")
    log = Log.open(
        files,
        "/data/t-0",
        config=LogConfig(),
        now_ms=0,
        clean_shutdown=False,
        recovery_point=0,
        log_start_offset=0,
        producers=Journal(),
    )
    for epoch in (1, 1, 3):
        batch = build_batch([NewRecord(1000, None, b"x")])
        log.append(memoryview(batch), read_header(batch), leader_epoch=epoch, now_ms=0)

    assert diverging_epoch(log, 3, 2) == EpochEnd(1, 2)
    assert truncation_offset(log, EpochEnd(2, 9)) == 2


class Journal:
    """A memory of producers with nothing in it."""

    first_unstable_offset = 2**63 - 1

    def load(self, entries):
        assert not entries

    def replay(self, header, view):
        return None

    def entries(self):
        return []
