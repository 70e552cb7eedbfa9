"""The first voters of a quorum whose log names them (KIP-853), as `kafka-storage format` writes them down."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.broker.listeners import this_host
from headrace.broker.store import METADATA_LOG
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import HeadraceError
from headrace.model.ids import decode_uuid

if TYPE_CHECKING:
    from uuid import UUID

    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files

_ENTRY = re.compile(r"(\d{1,10})@\[?([0-9a-zA-Z\-%._:]+?)\]?:(\d{1,5}):([0-9a-zA-Z_\-]{22})")


class BadVoters(HeadraceError):
    """What was given for the first controllers cannot be read."""


def parse_voters(text: str, listener: str) -> VoterSet:
    """The voters of `--initial-controllers`: id@host:port:directory-id, with commas between."""
    voters = []
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None or int(match[3]) > 65535:
            raise BadVoters(f"Cannot read '{entry}' in --initial-controllers. Write id@host:port:directory-id.")
        key = ReplicaKey(int(match[1]), decode_uuid(match[4]))
        voters.append(Voter(key, (Endpoint(listener, match[2], int(match[3])),)))
    found = VoterSet(voters)
    if len(found) < len(voters):
        raise BadVoters("A controller appears twice in --initial-controllers. Give each an id of its own.")
    return found


def only_voter(config: BrokerConfig, directory_id: UUID) -> VoterSet:
    """This node alone, where its controller listeners are told to be."""
    told = config.topology.advertised_controllers
    endpoints = tuple(Endpoint(one.name, one.host or this_host(), one.port) for one in told)
    return VoterSet([Voter(ReplicaKey(config.node_id, directory_id), endpoints)])


def directory_of(voters: VoterSet, node_id: int) -> UUID:
    """The directory id that a node was given among the voters."""
    voter = voters.by_id.get(node_id)
    if voter is None or voter.key.directory_id is None:
        raise BadVoters(f"This controller, {node_id}, is not in --initial-controllers.")
    return voter.key.directory_id


def write_voters(files: Files, log_dir: Path, voters: VoterSet, *, now_ms: int) -> None:
    """Write the voters where the first start of a controller finds them."""
    path = log_dir / METADATA_LOG
    path.mkdir(exist_ok=True)
    SnapshotFiles(files, str(path)).write_bootstrap(voters, now_ms=now_ms)
