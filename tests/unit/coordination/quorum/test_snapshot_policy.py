"""When snapshots are due and which may go."""

import pytest

from headrace.coordination.quorum.snapshot_policy import KeptSnapshot, SnapshotPolicy, keep_from
from headrace.cores.raft.log_mirror import OffsetAndEpoch

POLICY = SnapshotPolicy(bytes_between=100, interval_ms=50, retention_bytes=1000, retention_ms=500)


def kept(*sizes, every_ms=100):
    """Snapshots of these sizes, one after the other."""
    return [KeptSnapshot(OffsetAndEpoch(10 * n + 10, 1), size, n * every_ms) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("size", "oldest_ms", "due"),
    [(0, None, False), (1000, None, False), (99, 960, False), (100, 999, True), (1, 950, True)],
)
def test_due(size, oldest_ms, due):
    """Is a snapshot due after so many bytes, or after so long, and never without news?"""
    assert due is POLICY.is_due(bytes_since=size, oldest_ms=oldest_ms, now_ms=1000)


def test_never_by_time():
    """Does an interval of 0 mean that time alone makes no snapshot?"""
    policy = SnapshotPolicy(bytes_between=100, interval_ms=0)

    assert not policy.is_due(bytes_since=1, oldest_ms=0, now_ms=2**40)


@pytest.mark.parametrize(
    ("sizes", "log_bytes", "now_ms", "oldest"),
    [
        ((), 5000, 0, None),
        ((10,), 5000, 10_000, None),
        ((10, 10), 100, 300, None),
        ((600, 600, 100), 100, 300, 20),
        ((600, 600, 600), 100, 300, 30),
        ((10, 10, 10), 100, 650, 30),
        ((10, 10, 10), 100, 10_000, 30),
    ],
)
def test_what_may_go(sizes, log_bytes, now_ms, oldest):
    """Do the oldest go while all together are too large or they are too old, and does the newest always stay?"""
    found = keep_from(kept(*sizes), log_bytes=log_bytes, policy=POLICY, now_ms=now_ms)

    assert oldest == (found.offset if found is not None else None)


def test_no_limits():
    """Do negative limits keep everything?"""
    policy = SnapshotPolicy(retention_bytes=-1, retention_ms=-1)

    assert keep_from(kept(10**12, 10**12), log_bytes=10**12, policy=policy, now_ms=2**50) is None
