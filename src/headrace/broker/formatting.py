"""Whose log dirs these are, and who votes: what must be settled before a node can take part in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.features import check_levels
from headrace.coordination.quorum.bootstrap_file import read_bootstrap
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.cores.raft.voters import ReplicaKey, Voter, VoterSet
from headrace.model.errors import HeadraceError
from headrace.storage.meta_properties import read_meta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.coordination.quorum.settings import QuorumSettings
    from headrace.model.metadata_records import MetadataRecord
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.files import Files


class NotFormatted(HeadraceError):
    """A node of a cluster of several does not know which cluster it belongs to."""


def is_alone(config: BrokerConfig) -> bool:
    """Whether the settings name no other node: such a one may call its cluster what it likes."""
    if config.roles != {"broker", "controller"}:
        return False
    if config.quorum_voters:
        return {voter.node_id for voter in config.quorum_voters} == {config.node_id}
    ports = {one.port for one in config.listeners if one.name in config.controller_listener_names}
    return {server.port for server in config.quorum_bootstrap_servers} <= ports


def require_format(config: BrokerConfig, files: Files) -> None:
    """Refuse to start a node of several that was never told the cluster's id; blocking."""
    paths = {config.metadata_log_dir, *config.log_dirs}
    if not is_alone(config) and all(read_meta(files, path) is None for path in paths):
        raise NotFormatted(
            "This node is meant to work with others, and its log dirs do not say in which cluster. "
            "Format each node with the same id: kafka-storage format --cluster-id ID --config FILE"
        )


def first_records(files: Files, log_dir: str) -> Sequence[MetadataRecord]:
    """What a cluster shall begin with that has no records yet, if its format says so; blocking."""
    records = read_bootstrap(files, log_dir)
    check_levels(records)
    return records


def found_quorum(config: BrokerConfig, settings: QuorumSettings, files: Files, directory: str, *, now_ms: int) -> None:
    """Make a node that is alone the one voter of its quorum, if nobody has said yet who votes; blocking."""
    if config.quorum_voters or not is_alone(config):
        return
    snapshots = SnapshotFiles(files, directory)
    if not snapshots.ids():
        voter = Voter(ReplicaKey(settings.key.id, settings.key.directory_id), settings.core.endpoints)
        snapshots.write_bootstrap(VoterSet([voter]), now_ms=now_ms)
