"""Leading, seen from the leader."""

import pytest
from tests.unit.cores.raft.conftest import endpoints, key, voter_set

from headrace.cores.raft import leadership
from headrace.cores.raft.appending import append_control
from headrace.cores.raft.inputs import Flushed, Propose, Resign
from headrace.cores.raft.log_mirror import LogMirror, OffsetAndEpoch
from headrace.cores.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
)
from headrace.cores.raft.outputs import (
    Answer,
    AnswerProposal,
    AppendRecords,
    HighWatermarkMoved,
    LeadershipLost,
    LeadershipReady,
    Proposed,
    Voters,
)
from headrace.cores.raft.serving import known_high_watermark
from headrace.cores.raft.voters import ReplicaKey, Voter, VoterHistory, VoterSet
from headrace.model.errors import ErrorCode


def moved(node):
    return [output.offset for output in node.all(HighWatermarkMoved)]


def old_log(*epochs):
    log = LogMirror(voters=VoterHistory(voter_set(0, 1, 2)))
    for epoch in epochs:
        log.append(1, epoch)
    log.flushed(log.end_offset, 0)
    return log


def test_only_flushed_offsets_count(bench):
    """Does the high watermark wait until a majority, the leader among them, has flushed?"""
    node = bench().elect(1)
    node.fetch(1, 0, 0)
    assert [] == moved(node)
    node.fetch(1, 1, 1)
    assert [] == moved(node), "the leader itself has not flushed"
    assert -1 == known_high_watermark(node.raft.replica, node.raft.replica.role)
    node.step(Flushed(1, 0))

    assert [1] == moved(node)
    assert [LeadershipReady(1)] == node.all(LeadershipReady)


def test_a_majority_without_the_leader(bench):
    """Do two followers commit what the leader has not flushed yet?"""
    node = bench().elect(1)
    node.fetch(1, 1, 1)
    node.fetch(2, 1, 1)

    assert [1] == moved(node)


def test_older_epochs_are_committed_by_a_record_of_this_one(bench):
    """Do records of older epochs wait for one of the leader's own, though a majority has them?"""
    node = bench(log=old_log(1, 1, 2)).elect(1)
    assert 3 == node.raft.epoch
    node.flush()
    node.fetch(1, 3, 2)
    assert [] == moved(node)
    node.fetch(1, 4, 3)

    assert [4] == moved(node)


def test_the_high_watermark_never_falls(bench):
    """Does a fetch that was long under way change nothing?"""
    node = bench().elect(1)
    node.flush()
    node.step(Propose("p", 1, 3))
    node.flush()
    node.fetch(1, 4, 1)
    assert 4 == node.raft.high_watermark
    node.fetch(1, 1, 1)
    node.fetch(2, 2, 1)

    assert 4 == node.raft.high_watermark


def test_proposals(bench):
    """Are records appended where the leader's log ends, told so at once, and refused by anybody else?"""
    node = bench().elect(1)
    node.step(Propose("p", 1, 2, "records"))
    (batch,) = node.all(AppendRecords)[0].batches

    assert (1, 2, 1, "records") == (batch.base_offset, batch.count, batch.epoch, batch.records)
    assert [AnswerProposal("p", Proposed(ErrorCode.NONE, 1, 1))] == node.all(AnswerProposal)
    for other, epoch, count in ((node, 2, 1), (node, 1, 0), (bench(), 0, 1)):
        other.step(Propose("p", epoch, count))
        assert ErrorCode.NOT_LEADER_OR_FOLLOWER == other.all(AnswerProposal)[0].proposed.error
        assert [] == other.all(AppendRecords)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_refused_fetches(bench, more, error):
    """Does a bad fetch get Kafka's code and count for nothing?"""
    node = bench().elect(1)
    node.flush()

    assert error == node.fetch(1, 1, 0 if more.get("epoch") == 0 else 1, **more).error
    assert 0 == node.raft.high_watermark


@pytest.mark.parametrize(("offset", "last_epoch"), [(-1, 0), (0, -1), (0, 2)])
def test_impossible_fetches(bench, offset, last_epoch):
    """Is a fetch refused that no log could ask for?"""
    assert ErrorCode.INVALID_REQUEST == bench().elect(1).fetch(1, offset, last_epoch).error


def test_fetch_from_a_follower(bench):
    """Is who asks somebody else told who leads?"""
    node = bench()
    node.follow(leader_id=1, epoch=2)
    response = node.fetch(2, 0, 0)

    assert (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 2) == (response.error, response.leader_id, response.epoch)


def test_divergence_and_snapshots_are_told(bench):
    """Is a replica that has something else told so, and one that needs what is gone which snapshot to get?"""
    node = bench(log=old_log(1, 1, 2)).elect(1)
    assert OffsetAndEpoch(2, 1) == node.fetch(1, 5, 1).diverging
    node.log.add_snapshot(OffsetAndEpoch(2, 1))
    node.log.raise_start(OffsetAndEpoch(2, 1))

    assert OffsetAndEpoch(2, 1) == node.fetch(1, 1, 1).snapshot_id
    assert -1 == node.raft.replica.role.voters[1].end_offset


def test_what_there_is_is_answered_at_once(bench):
    """Is a fetch answered at once if there is more, if it does not want to wait, or if it is no replica's?"""
    node = bench().elect(1)

    node.fetch(1, 0, 0, max_wait_ms=500)
    assert [0] == [output.read_from for output in node.all(Answer)]
    assert node.fetch(1, 1, 1) is not None
    assert node.fetch(-1, 1, 1, max_wait_ms=500) is not None


def test_waiting_fetches(bench):
    """Does a fetch without news wait for records, for a higher high watermark, or for its time to be up?"""
    node = bench().elect(1)
    node.flush()
    assert node.fetch(1, 1, 1, max_wait_ms=500, high_watermark=1) is None
    node.step(Propose("p", 1, 1))
    assert [1] == [output.read_from for output in node.all(Answer)]

    assert node.fetch(1, 2, 1, max_wait_ms=500, high_watermark=1) is None
    node.flush()
    assert 2 == node.response("fetch 1").high_watermark

    assert node.fetch(1, 2, 1, max_wait_ms=500, high_watermark=2) is None
    node.wait(499)
    assert node.response("fetch 1") is None
    node.wait(1)
    assert isinstance(node.response("fetch 1"), FetchResponse)


def test_one_waiting_fetch_for_each_replica(bench):
    """Is a fetch that is asked again answered, so that none waits for ever?"""
    node = bench().elect(1)
    request = FetchRequest(replica=key(1), epoch=1, fetch_offset=1, last_epoch=1, max_wait_ms=500)
    node.ask(request, token="first")
    node.ask(request, token="second")

    assert node.response("first") is not None
    assert node.response("second") is None


def test_waiting_fetches_are_released(bench):
    """Does who waits for a leader that is none any more hear so, with the new leader if it is known?"""
    node = bench().elect(1)
    assert node.fetch(1, 1, 1, max_wait_ms=500) is None
    node.ask(BeginQuorumEpochRequest(leader_id=2, epoch=5))
    response = node.response("fetch 1")

    assert (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, 5) == (response.error, response.leader_id, response.epoch)
    assert [1] == [output.epoch for output in node.all(LeadershipLost)]


def test_check_quorum(bench):
    """Does a leader resign that hears of no majority, and only then, naming the most up to date first?"""
    node = bench(voters=(0, 1, 2, 3, 4)).elect(1, 2)
    node.wait(2_000)
    node.fetch(1, 0, 0)
    node.wait(999)
    node.fetch(3, 1, 1)
    node.wait(2_999)
    assert "Leader" == node.role
    node.fetch(2, 1, 1)
    node.wait(1)

    assert "Resigned" == node.role
    preferred = node.sent(EndQuorumEpochRequest)[0].request.preferred
    assert [2, 3, 1, 4] == [one.id for one in preferred]


def test_presenting_oneself(bench):
    """Does a leader say so again and again to voters that neither acknowledge nor fetch?"""
    node = bench().elect(1)
    first = node.sent(BeginQuorumEpochRequest)
    assert [1, 2] == [send.to for send in first]
    node.reply(first[0], BeginQuorumEpochResponse(leader_id=0, epoch=1))
    node.now_ms += 900
    node.fetch(1, 1, 1)
    node.wait(100)
    assert [] == node.sent(BeginQuorumEpochRequest), "the first is still under way"
    node.wait(1_020)

    assert 2 in [send.to for send in node.sent(BeginQuorumEpochRequest)]


def test_a_higher_epoch_ends_leadership(bench):
    """Does a leader give way to any higher epoch, and resign when its controller asks?"""
    node = bench().elect(1)
    send = node.sent(BeginQuorumEpochRequest)[0]
    node.reply(send, BeginQuorumEpochResponse(error=ErrorCode.FENCED_LEADER_EPOCH, epoch=9))
    assert ("Unattached", 9) == (node.role, node.raft.epoch)

    node = bench().elect(1)
    node.step(Resign(0))
    assert "Leader" == node.role
    node.step(Resign(1))
    assert "Resigned" == node.role


def test_describe(bench):
    """Does the leader tell how far everybody is, and anybody else that it does not lead?"""
    node = bench().elect(1)
    node.flush()
    node.fetch(1, 1, 1)
    node.fetch(8, 0, 0)
    node.wait(5)
    response = node.ask(DescribeQuorumRequest())
    now = node.now_ms

    assert (0, 1, 1) == (response.leader_id, response.epoch, response.high_watermark)
    told = [(one.key.id, one.end_offset, one.last_fetch_ms, one.last_caught_up_ms) for one in response.voters]
    assert [(0, 1, now, now), (1, 1, now - 5, now - 5), (2, -1, -1, -1)] == told
    assert [(8, 0)] == [(one.key.id, one.end_offset) for one in response.observers]
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == bench().ask(DescribeQuorumRequest()).error


def test_describe_static_voters(bench):
    """Are voters that settings name told without directories, the leader itself too?"""
    static = VoterSet(Voter(ReplicaKey(node_id), endpoints(node_id)) for node_id in range(3))
    node = bench(log=LogMirror(voters=VoterHistory(static))).elect(1)
    node.fetch(1, 1, 1)

    response = node.ask(DescribeQuorumRequest())

    assert [ReplicaKey(node_id) for node_id in range(3)] == [one.key for one in response.voters]
    assert [endpoints(node_id) for node_id in range(3)] == [one.endpoints for one in response.voters]


def test_a_voter_set_counts_when_it_is_appended(bench):
    """Are the new voters counted from their record on, with what was known of them as observers?"""
    node = bench(dynamic=True).elect(1)
    node.fetch(3, 3, 1)
    leader = node.raft.replica.role
    append_control(node.raft.replica, leader, (Voters(voter_set(1, 3)),))

    assert [(1, -1), (3, 3)] == [(one.key.id, one.end_offset) for one in leader.voters.values()]
    assert {0, 2} == {one.id for one in leader.observers}


def test_a_log_that_is_cleaned_under_a_waiting_fetch(bench):
    """Is who waits for records that are gone by then sent for a snapshot?"""
    node = bench().elect(1)
    node.flush()
    assert node.fetch(1, 1, 1, max_wait_ms=500, high_watermark=1) is None
    node.log.append(2, 1)
    node.log.add_snapshot(OffsetAndEpoch(3, 1))
    node.log.raise_start(OffsetAndEpoch(3, 1))
    node.wait(500)

    assert OffsetAndEpoch(3, 1) == node.response("fetch 1").snapshot_id


def test_observers_have_a_limit(bench, monkeypatch):
    """Does the observer that has not been seen for longest give way to a new one?"""
    monkeypatch.setattr(leadership, "OBSERVERS_MAX", 2)
    node = bench().elect(1)
    for node_id in (7, 8, 7, 9):
        node.now_ms += 1
        node.fetch(node_id, 0, 0)

    assert {7, 9} == {one.id for one in node.raft.replica.role.observers}


def test_waiting_fetches_have_a_limit(bench, monkeypatch):
    """Is one fetch too many answered rather than kept?"""
    monkeypatch.setattr(leadership, "PARKED_MAX", 1)
    node = bench().elect(1)

    assert node.fetch(1, 1, 1, max_wait_ms=500) is None
    assert node.fetch(2, 1, 1, max_wait_ms=500) is not None
