"""Following, seen from the follower."""

import pytest
from tests.unit.cores.raft.conftest import endpoints, key, voter_set

from headrace.cores.raft.discovery import fetch_request
from headrace.cores.raft.inputs import SendFailed
from headrace.cores.raft.log_mirror import LogMirror, OffsetAndEpoch
from headrace.cores.raft.messages import (
    Batch,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    UpdateVoterRequest,
    VoteRequest,
)
from headrace.cores.raft.news import take_in
from headrace.cores.raft.outputs import AppendRecords, FlushLog, Halt, HighWatermarkMoved, Persist, TruncateLog
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import Endpoint, VoterHistory
from headrace.model.errors import ErrorCode


def log_of(*epochs):
    log = LogMirror(voters=VoterHistory(voter_set(0, 1, 2)))
    for epoch in epochs:
        log.append(1, epoch)
    log.flushed(log.end_offset, 0)
    return log


def records(*batches, **more):
    more.setdefault("leader_id", 1)
    more.setdefault("epoch", 2)
    return FetchResponse(batches=tuple(Batch(*batch) for batch in batches), **more)


def test_a_fetch_offset_says_what_is_flushed(bench):
    """Is the next fetch sent only when what the last one brought is flushed?"""
    node = bench()
    fetch = node.follow(epoch=2)
    assert (0, 0, 2, 1) == (fetch.request.fetch_offset, fetch.request.last_epoch, fetch.request.epoch, fetch.to)
    node.reply(fetch, records((0, 3, 1), (3, 1, 2), high_watermark=2))

    assert [] == node.sent()
    assert [4] == [flush.offset for flush in node.all(FlushLog)]
    assert [2] == [output.offset for output in node.all(HighWatermarkMoved)]
    node.flush()
    request = node.sent(FetchRequest)[0].request
    assert (4, 2, 2) == (request.fetch_offset, request.last_epoch, request.high_watermark)
    node.log.append(1, 2)
    with pytest.raises(AssertionError):
        fetch_request(node.raft.replica, 0)


def test_the_high_watermark_is_not_above_the_log(bench):
    """Does a follower commit only what it has?"""
    node = bench()
    node.reply(node.follow(epoch=2), records((0, 3, 1), high_watermark=50))

    assert 3 == node.raft.high_watermark


@pytest.mark.parametrize(
    "batches",
    [[(1, 1, 1)], [(0, 0, 1)], [(0, 1, 3)], [(0, 1, 2), (1, 1, 1)], [(0, 1, 1), (2, 1, 1)]],
)
def test_records_that_do_not_fit_are_left(bench, batches):
    """Is a gap, a falling epoch or one from the future never appended, nor the high watermark believed?"""
    node = bench()
    node.reply(node.follow(epoch=2), records(*batches, high_watermark=1))

    assert [] == node.all(AppendRecords)
    assert 0 == node.raft.high_watermark


def test_truncation_by_epoch(bench):
    """Is the log cut where the leader's epochs part from it, and fetched from there?"""
    node = bench(log=log_of(1, 1, 2, 2))
    fetch = node.follow(epoch=5)
    node.reply(fetch, FetchResponse(leader_id=1, epoch=5, diverging=OffsetAndEpoch(3, 1)))

    assert [TruncateLog(2)] == node.all(TruncateLog)
    request = node.sent(FetchRequest)[0].request
    assert (2, 1) == (request.fetch_offset, request.last_epoch)


def test_committed_records_are_never_truncated(bench):
    """Does a replica rather stop than give up what is committed?"""
    node = bench()
    node.reply(node.follow(epoch=2), records((0, 3, 1), high_watermark=3))
    node.flush()
    fetch = node.sent(FetchRequest)[0]
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2, diverging=OffsetAndEpoch(1, 1)))

    assert 1 == len(node.all(Halt))
    assert [] == node.all(TruncateLog)


def test_a_stale_leader_is_not_heard(bench):
    """Is BeginQuorumEpoch of an older epoch refused, and is one of this epoch from somebody else a reason to stop?"""
    node = bench(state=QuorumState(5))

    refused = node.ask(BeginQuorumEpochRequest(leader_id=1, epoch=4))
    assert (ErrorCode.FENCED_LEADER_EPOCH, 5, "Unattached") == (refused.error, refused.epoch, node.role)
    wrong = node.ask(BeginQuorumEpochRequest(leader_id=1, epoch=5, voter=key(2)))
    assert ErrorCode.INVALID_VOTER_KEY == wrong.error
    node.ask(BeginQuorumEpochRequest(leader_id=2, epoch=5))
    assert 1 == len(node.all(Halt))


def test_nobody_is_told_that_it_leads(bench):
    """Does a replica not believe others that say it leads?"""
    node = bench(state=QuorumState(5))
    take_in(node.raft.replica, leader_id=0, epoch=7, endpoints=endpoints(0))

    assert ("Unattached", 5) == (node.role, node.raft.epoch)


def test_late_answers_are_not_used(bench):
    """Is the answer of a leader that was followed before left alone?"""
    node = bench()
    fetch = node.follow(leader_id=1, epoch=2)
    node.follow(leader_id=2, epoch=3)
    node.reply(fetch, records((0, 1, 1)))

    assert [] == node.all(AppendRecords)


def test_silence_of_the_leader(bench):
    """Does a voter stand for election when the leader is silent, and not as long as it answers?"""
    node = bench()
    fetch = node.follow(epoch=2)
    node.wait(1_900)
    node.reply(fetch, records())
    node.wait(1_999)
    assert "Follower" == node.role
    node.wait(1)

    assert "Prospective" == node.role


def test_a_resignation_hurries(bench):
    """Does the first preferred successor stand at once, and a later one later?"""
    node = bench()
    node.follow(leader_id=1, epoch=2)
    node.ask(EndQuorumEpochRequest(leader_id=1, epoch=2, preferred=(key(0), key(2))))
    assert "Prospective" == node.role

    node = bench()
    node.follow(leader_id=1, epoch=2)
    node.ask(EndQuorumEpochRequest(leader_id=1, epoch=2, preferred=(key(2), key(0))))
    assert "Follower" == node.role
    node.wait(500)
    assert "Prospective" == node.role
    assert ErrorCode.FENCED_LEADER_EPOCH == node.ask(EndQuorumEpochRequest(leader_id=1, epoch=1)).error


def test_an_observer_finds_the_leader(bench):
    """Does an observer ask the bootstrap servers, learn who leads, and use the answer of the leader at once?"""
    node = bench(me=9, voters=(), dynamic=False, bootstrap_servers=2)
    asked = node.sent(FetchRequest)[0]
    assert (-2, ()) == (asked.to, asked.endpoints)
    told = FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader_id=1, epoch=4, endpoints=endpoints(1))
    node.reply(asked, told)
    fetch = node.sent(FetchRequest)[0]
    assert ("Follower", 1, endpoints(1)) == (node.role, fetch.to, fetch.endpoints)
    assert [QuorumState(4, 1)] == [persist.state for persist in node.all(Persist)]

    node.step(SendFailed(fetch.to, fetch.correlation))
    assert [-2] == [send.to for send in node.sent(FetchRequest)], "the leader is gone, others may know more"
    again = node.sent(FetchRequest)[0]
    node.reply(again, records((0, 1, 4), epoch=4, endpoints=endpoints(1)))
    assert 1 == len(node.all(AppendRecords))


def test_unknown_leaders_are_asked_for_slowly(bench):
    """Is nobody asked again and again without a pause?"""
    node = bench(me=9)
    asked = node.sent(FetchRequest)[0]
    node.reply(asked, FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert [] == node.sent()
    node.wait(20)
    assert 1 == len(node.sent(FetchRequest))


def test_a_voter_that_moved_says_so(bench):
    """Does a voter have its endpoints corrected in the voter set?"""
    node = bench(dynamic=True)
    moved = (Endpoint("CONTROLLER", "elsewhere", 1),)
    fetch = node.follow(leader_id=1, epoch=2)
    assert [] == node.sent(UpdateVoterRequest)
    voters = node.log.voters.last
    node.log.voters.add(5, voters.update(type(voters.by_id[0])(key(0), moved)))
    node.now_ms += 1_500
    node.reply(fetch, records())
    fetch = node.sent(FetchRequest)[0]
    node.wait(600)
    assert [] == node.sent(), "a fetch is under way"
    node.reply(fetch, records())

    assert [endpoints(0)] == [send.request.endpoints for send in node.sent(UpdateVoterRequest)]


def test_voters_come_with_the_log(bench):
    """Does a voter set count as soon as it is appended, and its truncation undo that?"""
    node = bench(dynamic=True)
    fetch = node.follow(epoch=2)
    node.reply(fetch, records((0, 2, 1, voter_set(0, 1))))
    assert (voter_set(0, 1), 1) == (node.log.voters.last, node.log.voters.last_offset)
    node.flush()
    fetch = node.sent(FetchRequest)[0]
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2, diverging=OffsetAndEpoch(1, 1)))

    assert voter_set(0, 1, 2) == node.log.voters.last


@pytest.mark.parametrize(
    "answer",
    [
        FetchResponse(leader_id=1, epoch=2, snapshot_id=OffsetAndEpoch(1, 1)),
        FetchResponse(leader_id=1, epoch=2, diverging=OffsetAndEpoch(9, 2)),
        records((7, 1, 1)),
    ],
)
def test_answers_of_no_use(bench, answer):
    """Is a leader whose answer helps nothing not asked again at once?"""
    node = bench(log=log_of(1, 2))
    node.reply(node.follow(epoch=2), answer)

    assert [] == node.sent()
    assert 2 == node.log.end_offset
    node.wait(20)
    assert 1 == len(node.sent(FetchRequest))


def fail_to_fetch(node, times):
    """Have fetches fail that were sent, and those that follow."""
    for _ in range(times):
        (fetch,) = node.sent(FetchRequest)
        node.step(SendFailed(fetch.to, fetch.correlation))
        node.wait(node.config.retry_backoff_ms)


def test_a_leader_that_cannot_be_reached(bench):
    """Is a leader doubted after three failures in a row, long before its time is up, and are votes given then?"""
    node = bench(fetch_timeout_ms=60_000)
    node.follow(leader_id=1, epoch=2)
    fail_to_fetch(node, 2)
    assert "Follower" == node.role
    (fetch,) = node.sent(FetchRequest)
    node.step(SendFailed(fetch.to, fetch.correlation))

    assert "Prospective" == node.role
    assert all(send.request.pre_vote for send in node.sent(VoteRequest))


def test_a_leader_that_is_reached_again(bench):
    """Are failures forgotten as soon as the leader answers?"""
    node = bench(fetch_timeout_ms=60_000)
    node.follow(leader_id=1, epoch=2)
    fail_to_fetch(node, 2)
    (fetch,) = node.sent(FetchRequest)
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2, endpoints=endpoints(1)))
    fail_to_fetch(node, 2)

    assert "Follower" == node.role


def test_an_observer_does_not_doubt(bench):
    """Does one who has no vote go on asking, whoever cannot be reached?"""
    node = bench(me=7, fetch_timeout_ms=60_000)
    node.follow(leader_id=1, epoch=2)
    for _ in range(5):
        for send in node.sent(FetchRequest):
            node.step(SendFailed(send.to, send.correlation))
        node.wait(node.config.retry_backoff_ms)

    assert "Follower" == node.role
