"""The quorum-state file."""

from uuid import UUID

import pytest

from headrace.cores.raft.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from headrace.cores.raft.voters import ReplicaKey


@pytest.mark.parametrize(
    "state",
    [
        QuorumState(),
        QuorumState(7, 3),
        QuorumState(7, -1, ReplicaKey(2)),
        QuorumState(7, 2, ReplicaKey(2, UUID(int=2**100 + 1))),
    ],
)
def test_round_trip(state):
    """Is what was written down read again?"""
    assert state == decode_quorum_state(encode_quorum_state(state))


def test_kafkas_own_files():
    """Are the files of both versions that Kafka writes understood?"""
    old = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    new = b'{"leaderId":-1,"leaderEpoch":3,"votedId":4,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'

    assert QuorumState(2, 1) == decode_quorum_state(old)
    assert QuorumState(3, -1, ReplicaKey(4, UUID(int=1))) == decode_quorum_state(new)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"leaderEpoch":"x"}', b'{"leaderEpoch":-1}', b"\xff\x00"])
def test_damage_is_noticed(text):
    """Is a damaged file refused rather than taken for an empty one?"""
    with pytest.raises(ValueError, match="quorum state"):
        decode_quorum_state(text)
