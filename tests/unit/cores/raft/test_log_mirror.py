"""The outline of a log, and how two logs find where they part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.raft.log_mirror import Behind, Divergence, LogMirror, OffsetAndEpoch
from headrace.cores.raft.voters import VoterHistory, VoterSet


def mirror(*epochs, start=0, snapshots=()):
    """A log whose records have these epochs."""
    log = LogMirror(start_offset=start, end_offset=start, snapshots=snapshots)
    for epoch in epochs:
        log.append(1, epoch)
    return log


@pytest.mark.parametrize(
    ("offset", "epoch", "verdict"),
    [
        (0, 0, None),
        (2, 1, None),
        (1, 1, None),
        (3, 1, Divergence(OffsetAndEpoch(2, 1))),
        (3, 2, Divergence(OffsetAndEpoch(2, 1))),
        (5, 3, None),
        (6, 3, Divergence(OffsetAndEpoch(5, 3))),
        (5, 4, Divergence(OffsetAndEpoch(5, 3))),
        (2, 0, Divergence(OffsetAndEpoch(0, 0))),
    ],
)
def test_validate(offset, epoch, verdict):
    """Can a replica whose log ends so go on here?"""
    assert verdict == mirror(1, 1, 3, 3, 3).validate(offset, epoch)


@pytest.mark.parametrize(
    ("offset", "epoch", "behind"),
    [(0, 0, True), (9, 2, True), (10, 1, True), (10, 2, False), (11, 2, False), (12, 3, False), (15, 1, True)],
)
def test_validate_behind_a_snapshot(offset, epoch, behind):
    """Is a replica that needs what was cleaned away sent for the newest snapshot?"""
    log = mirror(2, 3, start=10, snapshots=[OffsetAndEpoch(10, 2), OffsetAndEpoch(11, 2)])

    expected = Behind(OffsetAndEpoch(11, 2)) if behind else None
    assert expected == log.validate(offset, epoch)


def test_snapshot_for_who_has_nothing():
    """Is an empty replica sent for a snapshot even if the log is whole, but not for that of formatting?"""
    assert mirror(1, snapshots=[OffsetAndEpoch(0, 0)]).validate(0, 0) is None
    assert Behind(OffsetAndEpoch(1, 1)) == mirror(1, snapshots=[OffsetAndEpoch(1, 1)]).validate(0, 0)


EPOCHS = st.lists(st.integers(1, 4), max_size=8).map(sorted)


@given(shared=EPOCHS, mine=EPOCHS, theirs=EPOCHS)
def test_fetching_makes_logs_equal(shared, mine, theirs):
    """Does a follower that does what it is told end with a part of the leader's log, without losing what they share?"""
    base = shared[-1] if shared else 0
    # Epochs are written by one leader only, so what the two have on their own has different epochs.
    leader = [*((epoch, "s") for epoch in shared), *((base + 2 * epoch, "l") for epoch in theirs)]
    follower = [*((epoch, "s") for epoch in shared), *((base + 2 * epoch - 1, "f") for epoch in mine)]
    leader_log = mirror(*(epoch for epoch, _ in leader))
    follower_log = mirror(*(epoch for epoch, _ in follower))
    for _ in range(20):
        verdict = leader_log.validate(follower_log.end_offset, follower_log.last_epoch)
        if verdict is None:
            break
        point = follower_log.truncation_point(verdict.at)
        assert point < follower_log.end_offset
        follower_log.truncate_to(point)
        del follower[point:]

    assert leader[: len(follower)] == follower
    assert len(follower) >= len(shared)


def test_flushes_of_an_earlier_log_do_not_count():
    """Is a flush that began before a truncation worth nothing?"""
    log = mirror(1, 1, 1)
    before = log.generation
    log.truncate_to(1)
    log.append(2, 2)

    assert not log.flushed(3, before)
    assert not log.is_flushed
    assert log.flushed(3, log.generation)
    assert not log.flushed(3, log.generation)
    assert log.is_flushed


def test_truncation_forgets():
    """Are epochs and voters forgotten with their records?"""
    log = LogMirror(voters=VoterHistory())
    for epoch in (1, 2):
        log.voters.add(log.append(1, epoch), VoterSet())
    log.truncate_to(5)
    assert OffsetAndEpoch(2, 2) == log.end
    log.truncate_to(1)

    assert (OffsetAndEpoch(1, 1), 0) == (log.end, log.voters.last_offset)
    log.truncate_to(0)
    assert OffsetAndEpoch(0, 0) == log.end


def test_cleaning_and_loading():
    """Do the epochs stay right when the log starts later, or starts again?"""
    log = mirror(1, 1, 2, 2)
    for snapshot in (OffsetAndEpoch(1, 1), OffsetAndEpoch(3, 2), OffsetAndEpoch(3, 2)):
        log.add_snapshot(snapshot)
    log.raise_start(OffsetAndEpoch(3, 2))

    assert (3, 4, 2, [OffsetAndEpoch(3, 2)]) == (log.start_offset, log.end_offset, log.last_epoch, log.snapshots)
    assert [2, 2, None, None] == [log.epoch_before(offset) for offset in (3, 4, 2, 5)]
    log.add_snapshot(OffsetAndEpoch(4, 2))
    log.raise_start(OffsetAndEpoch(4, 2))
    assert OffsetAndEpoch(4, 2) == log.end
    log.reset_to(OffsetAndEpoch(9, 5), None)
    assert (OffsetAndEpoch(9, 5), 9, True) == (log.end, log.start_offset, log.is_flushed)
