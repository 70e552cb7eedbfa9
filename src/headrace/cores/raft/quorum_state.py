"""What a replica must never forget of elections, in the form of Kafka's `quorum-state` file."""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import Struct

from headrace.cores.raft.voters import NOBODY, ReplicaKey
from headrace.model.ids import decode_uuid, encode_uuid

_VERSION = 1
"""The form of the file since voters have directories (KIP-853)."""
_NO_DIRECTORY = UUID(int=0)


class QuorumState(Struct, frozen=True):
    """The part of a replica that is written down before anybody hears of it."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None
    """Whom this replica voted for in the epoch."""


def encode_quorum_state(state: QuorumState) -> bytes:
    """The content of the `quorum-state` file."""
    voted = state.voted
    directory = voted.directory_id if voted is not None and voted.directory_id is not None else _NO_DIRECTORY
    return msgspec.json.encode(
        {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.id if voted is not None else NOBODY,
            "votedDirectoryId": encode_uuid(directory),
            "data_version": _VERSION,
        }
    )


def decode_quorum_state(text: bytes) -> QuorumState:
    """Read a `quorum-state` file of either form; raises ValueError if it is none."""
    try:
        fields = msgspec.json.decode(text, type=_File)
        directory = decode_uuid(fields.votedDirectoryId) if fields.votedDirectoryId else _NO_DIRECTORY
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ValueError(f"The quorum state is damaged: {fault}") from fault
    if fields.leaderEpoch < 0:
        raise ValueError("The quorum state has a negative epoch.")
    known = None if directory == _NO_DIRECTORY else directory
    return QuorumState(
        epoch=fields.leaderEpoch,
        leader_id=max(fields.leaderId, NOBODY),
        voted=ReplicaKey(fields.votedId, known) if fields.votedId >= 0 else None,
    )


class _File(Struct):
    """The fields of the file that matter; version 0 had more."""

    leaderEpoch: int  # noqa: N815 - the file's own names
    leaderId: int = NOBODY  # noqa: N815
    votedId: int = NOBODY  # noqa: N815
    votedDirectoryId: str = ""  # noqa: N815
