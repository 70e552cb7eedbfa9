"""Snapshots of the quorum's log."""

import pytest
from tests.unit.cores.raft.conftest import key, voter_set

from headrace.cores.raft.inputs import CleanBefore, SnapshotLoaded, SnapshotWritten, Tick
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import (
    Batch,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from headrace.cores.raft.outputs import Answer, HighWatermarkMoved, LoadSnapshot, RaiseLogStart, WriteSnapshotPiece
from headrace.model.errors import ErrorCode

ID = OffsetAndEpoch(10, 1)


def sent_for_a_snapshot(bench):
    """A follower whose leader has only a snapshot for it."""
    node = bench(dynamic=True)
    fetch = node.follow(leader_id=1, epoch=2)
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2, snapshot_id=ID))
    return node


def piece(position, data, size=5, **more):
    return FetchSnapshotResponse(leader_id=1, epoch=2, snapshot_id=ID, position=position, data=data, size=size, **more)


def test_fetching_one_piece_by_piece(bench):
    """Are all pieces asked for in turn, and does the log start again behind the whole?"""
    node = sent_for_a_snapshot(bench)
    first = node.sent(FetchSnapshotRequest)[0]
    assert (ID, 0) == (first.request.snapshot_id, first.request.position)
    node.reply(first, piece(0, b"abc"))
    second = node.sent(FetchSnapshotRequest)[0]
    assert 3 == second.request.position
    node.reply(second, piece(3, b"de"))

    assert [(3, b"de")] == [(output.position, output.data) for output in node.all(WriteSnapshotPiece)]
    assert [LoadSnapshot(ID)] == node.all(LoadSnapshot)
    assert [] == node.sent()
    with pytest.raises(AssertionError):
        node.step(Tick())
    node.step(SnapshotLoaded(ID, voter_set(0, 1)))
    request = node.sent(FetchRequest)[0].request
    assert (10, 1) == (request.fetch_offset, request.last_epoch)
    assert [HighWatermarkMoved(10)] == node.all(HighWatermarkMoved)
    assert voter_set(0, 1) == node.log.voters.last


@pytest.mark.parametrize(
    "answer",
    [
        FetchSnapshotResponse(error=ErrorCode.SNAPSHOT_NOT_FOUND, leader_id=1, epoch=2),
        piece(1, b"abc"),
        piece(0, b""),
        piece(0, b"abcdef"),
        FetchSnapshotResponse(leader_id=1, epoch=2, snapshot_id=OffsetAndEpoch(11, 1), data=b"a", size=5),
    ],
)
def test_a_snapshot_that_is_gone(bench, answer):
    """Does the replica begin again with a fetch if the piece is not the one it asked for?"""
    node = sent_for_a_snapshot(bench)
    node.reply(node.sent(FetchSnapshotRequest)[0], answer)

    assert [] == node.all(WriteSnapshotPiece)
    assert 1 == len(node.sent(FetchRequest))


def committed_leader(bench):
    """A leader with three committed records."""
    node = bench(voters=(0,))
    node.flush()
    return node


def test_handing_one_out(bench):
    """Does the leader hand out a snapshot it has, and say of others that it has none?"""
    node = bench().elect(1)
    node.log.snapshots = [OffsetAndEpoch(0, 0), ID]
    asked = {"replica": key(1), "epoch": 1}

    assert ErrorCode.NONE == node.ask(FetchSnapshotRequest(snapshot_id=ID, position=7, **asked)).error
    assert [7] == [output.read_from for output in node.all(Answer)]
    refusals = {
        ErrorCode.SNAPSHOT_NOT_FOUND: FetchSnapshotRequest(snapshot_id=OffsetAndEpoch(9, 1), position=0, **asked),
        ErrorCode.POSITION_OUT_OF_RANGE: FetchSnapshotRequest(snapshot_id=ID, position=-1, **asked),
        ErrorCode.FENCED_LEADER_EPOCH: FetchSnapshotRequest(snapshot_id=ID, position=0, replica=key(1), epoch=0),
    }
    for error, request in refusals.items():
        assert error == node.ask(request).error
    formatting = FetchSnapshotRequest(snapshot_id=OffsetAndEpoch(0, 0), position=0, **asked)
    assert ErrorCode.SNAPSHOT_NOT_FOUND == node.ask(formatting).error


def test_fetching_a_snapshot_counts_as_a_sign_of_life(bench):
    """Does a leader stay one whose followers are busy with snapshots?"""
    node = bench().elect(1)
    node.log.snapshots = [ID]
    for _ in range(4):
        node.wait(2_000)
        node.ask(FetchSnapshotRequest(replica=key(1), epoch=1, snapshot_id=ID, position=0))

    assert "Leader" == node.role


def test_cleaning(bench):
    """Does the log start at a snapshot of committed records, and at nothing else?"""
    node = committed_leader(bench)
    snapshot = OffsetAndEpoch(1, 1)
    node.step(CleanBefore(snapshot))
    assert [] == node.all(RaiseLogStart)
    with pytest.raises(AssertionError):
        node.step(SnapshotWritten(OffsetAndEpoch(2, 1)))
    node.step(SnapshotWritten(snapshot))
    node.step(CleanBefore(snapshot))

    assert [RaiseLogStart(snapshot)] == node.all(RaiseLogStart)
    assert (1, 1) == (node.log.start_offset, node.log.last_epoch)
    node.step(SnapshotWritten(snapshot))
    node.step(CleanBefore(snapshot))
    assert [] == node.all(RaiseLogStart)


def test_what_is_in_a_snapshot_is_committed(bench):
    """Does a replica that restarts know that its snapshot is committed?"""
    node = bench()
    node.reply(node.follow(epoch=2), FetchResponse(leader_id=1, epoch=2, batches=(Batch(0, 4, 1),), high_watermark=3))
    node.flush()
    node.step(SnapshotWritten(OffsetAndEpoch(3, 1)))

    assert 3 == bench(log=node.log).raft.high_watermark
