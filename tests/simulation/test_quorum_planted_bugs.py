"""The simulator finds what it is there to find: known mistakes of Raft implementations, planted one at a time."""

from collections.abc import Callable

import pytest

from headrace.cores.raft import election, following, leadership, voter_changes
from headrace.cores.raft.log_mirror import LogMirror
from headrace.cores.raft.messages import BeginQuorumEpochResponse
from headrace.cores.raft.news import reply
from headrace.cores.raft.outputs import Persist, TruncateLog
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.raft import _REQUESTS, Raft
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import Leader
from headrace.model.errors import ErrorCode
from headrace.sim.quorum import QuorumWorld
from headrace.sim.quorum_invariants import Violation


def vote_twice(patch):
    """A voter looks at a candidate's log and forgets that it has voted."""
    patch.setattr(
        election,
        "can_grant",
        lambda replica, request: not isinstance(replica.role, Leader) and election.is_up_to_date(replica, request),
    )


def ask_no_log(patch):
    """A voter does not look at a candidate's log."""
    patch.setattr(election, "is_up_to_date", lambda replica, request: True)


def count_unflushed(patch):
    """A leader counts what it has written as if it were flushed."""

    def majority_offset(replica, leader):
        own, end = replica.key.id, replica.log.end_offset
        offsets = sorted((end if node == own else one.end_offset for node, one in leader.voters.items()), reverse=True)
        return offsets[len(offsets) // 2]

    patch.setattr(leadership, "majority_offset", majority_offset)


def fetch_unflushed(patch):
    """A follower fetches on before it has flushed, and so acknowledges what it may lose."""
    patch.setattr(LogMirror, "is_flushed", True)


def commit_old_epochs(patch):
    """A leader commits records of older epochs because a majority has them."""
    patch.setattr(leadership, "is_of_this_epoch", lambda leader, offset: True)


def truncate_to_high_watermark(patch):
    """A follower begins with cutting its log to its high watermark, as Kafka did before KIP-101."""
    become_follower = Replica.become_follower

    def become(replica, epoch, leader_id, endpoints):
        become_follower(replica, epoch, leader_id, endpoints)
        if replica.high_watermark < replica.log.end_offset:
            replica.log.truncate_to(replica.high_watermark)
            replica.emit(TruncateLog(replica.high_watermark))
            replica.want_flush()

    patch.setattr(Replica, "become_follower", become)


def obey_stale_leader(patch):
    """A replica follows whoever says it leads, of whatever epoch."""

    def on_begin_epoch(replica, token, request):
        if request.epoch < replica.epoch:
            replica.state = QuorumState(request.epoch, request.leader_id)
            replica.emit(Persist(replica.state))
        replica.answer(token, reply(replica, BeginQuorumEpochResponse, ErrorCode.NONE))

    kind = next(kind for kind in _REQUESTS if kind.__name__ == "BeginQuorumEpochRequest")
    patch.setitem(_REQUESTS, kind, (on_begin_epoch, BeginQuorumEpochResponse))


def believe_high_watermark(patch):
    """A follower commits as far as its leader has, though it does not have all of that."""
    take_over = following.take_over

    def believing(replica, response):
        used = take_over(replica, response)
        replica.move_high_watermark(response.high_watermark)
        return used

    patch.setattr(following, "take_over", believing)


def change_voters_at_once(patch):
    """A change of the voters does not wait for the one before."""
    patch.setattr(
        voter_changes,
        "refusal",
        lambda replica, leader: ErrorCode.NONE if replica.log.voters.kraft_version else ErrorCode.UNSUPPORTED_VERSION,
    )


def count_who_went_on(patch):
    """A leader counts fetches of later epochs than its own: of voters that have promised themselves to another.

    Fetches of earlier epochs do no harm, so that no simulation can miss the check against them: their offsets are
    compared with the leader's log by an epoch below its own, so they lie below its first record, and nothing is
    committed before that record is. The check tells such a follower sooner that it has a new leader.
    """
    leader_error = leadership.leader_error
    patch.setattr(leadership, "leader_error", lambda replica, epoch: leader_error(replica, min(epoch, replica.epoch)))


class Forgetful(Raft):
    """Forgets its vote over a restart."""

    def __init__(self, *, state, **rest):
        super().__init__(state=QuorumState(state.epoch, state.leader_id), **rest)


class Hasty(Raft):
    """Says first and writes down after."""

    def step(self, given_input, now_ms):
        outputs = super().step(given_input, now_ms)
        return sorted(outputs, key=lambda output: isinstance(output, Persist))


NERVOUS = {"nerves": 0.8, "fetch_records_max": 1}
"""Something happens at each important moment, and records travel one by one."""

PLANTED: dict[str, tuple[Callable[..., None] | type[Raft], str, range, dict[str, float]]] = {
    "vote twice": (vote_twice, "one vote", range(100), {}),
    "forget the vote": (Forgetful, "one vote", range(1000), NERVOUS),
    "speak before writing": (Hasty, "one vote", range(100), {}),
    "no log check": (ask_no_log, "leader completeness", range(100), {}),
    "count unflushed": (count_unflushed, "majority", range(100), {}),
    "fetch before flush": (fetch_unflushed, "majority", range(100), {}),
    "commit old epochs": (commit_old_epochs, "leader completeness", range(2000), NERVOUS),
    "truncate to high watermark": (truncate_to_high_watermark, "committed", range(100), {}),
    "believe the high watermark": (believe_high_watermark, "monotonic", range(100), {}),
    "obey a stale leader": (obey_stale_leader, "monotonic", range(300), {}),
    "count who went on": (count_who_went_on, "own epoch", range(400), {"usurpers": True}),
    "voters two at a time": (change_voters_at_once, "leader completeness", range(250, 3000), NERVOUS),
}
"""What is planted, which invariant it breaks, within which seeds it must be found, and in which kind of world."""


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name, monkeypatch):
    """Does a known mistake break the invariant that is there for it, within the seeds given?"""
    bug, invariant, seeds, world = PLANTED[name]
    make_raft = bug if isinstance(bug, type) else Raft
    if not isinstance(bug, type):
        bug(monkeypatch)
    found = set()
    for seed in seeds:
        try:
            QuorumWorld(seed, make_raft, **world).run()
        except Violation as fault:
            found.add(fault.invariant)
            if fault.invariant == invariant:
                break

    assert invariant in found, f"{name}: {invariant} not broken within {len(seeds)} seeds"
