"""The `quorum-state` file: what must never be forgotten of elections, as Kafka writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.raft.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from headrace.model.errors import StorageFault
from headrace.storage.checkpoint_file import replace_file

if TYPE_CHECKING:
    from headrace.storage.files import Files

QUORUM_STATE = "quorum-state"


def read_quorum_state(files: Files, directory: str) -> QuorumState:
    """What the file in a directory says, or the state of who was never in a quorum; StorageFault if it is damaged."""
    path = f"{directory}/{QUORUM_STATE}"
    try:
        return decode_quorum_state(files.read(path))
    except FileNotFoundError:
        return QuorumState()
    except (OSError, ValueError) as fault:
        # Without its vote a replica could vote twice in an epoch, so it must not guess.
        raise StorageFault(f"{path}: {fault}") from fault


def write_quorum_state(files: Files, directory: str, state: QuorumState) -> None:
    """Put a state in the place of the last one; blocking, durable on return."""
    try:
        replace_file(files, f"{directory}/{QUORUM_STATE}", encode_quorum_state(state))
    except OSError as fault:
        raise StorageFault(f"{directory}/{QUORUM_STATE}: {fault}") from fault
