"""What a quorum is told: who it is, who votes, where the others are, and its knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.voters import Endpoint, Endpoints, ReplicaKey, Voter, VoterSet
from headrace.model.log_config import LogConfig

if TYPE_CHECKING:
    from uuid import UUID

    from headrace.settings.broker import BrokerConfig


_FETCH_WAIT_MAX_MS = 500
"""How long a fetch waits for news at the leader, Kafka's number; never so long that it is taken for unanswered."""


class QuorumSettings(Struct, frozen=True, kw_only=True):
    """One replica's place in the quorum."""

    key: ReplicaKey
    core: QuorumConfig
    static_voters: VoterSet | None = None
    """Those of `controller.quorum.voters`; they count only while the log names none."""
    listener: str = "CONTROLLER"
    """The listener that controllers reach each other by."""
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    """Hosts and ports to ask for the quorum."""
    fetch_bytes_max: int = 1 << 20
    snapshots: SnapshotPolicy = SnapshotPolicy()
    stop_timeout_ms: int = 5_000
    """How long a stop waits for somebody else to lead."""


def quorum_settings(
    config: BrokerConfig, *, cluster_id: str, directory_id: UUID | None, endpoints: Endpoints = (), alone: bool = False
) -> QuorumSettings:
    """The quorum's settings as the node's have them; `endpoints` are where this node's controller listens.

    `alone` makes the node the only voter where the settings name none: a directory may not have been formatted with it.
    """
    listener = config.controller_listener_names[0]
    voters = [
        Voter(ReplicaKey(voter.node_id), (Endpoint(listener, voter.host, voter.port),))
        for voter in config.quorum_voters
    ]
    if alone and not voters:
        voters = [Voter(ReplicaKey(config.node_id), endpoints)]
    servers = () if voters else config.quorum_bootstrap_servers
    return QuorumSettings(
        key=ReplicaKey(config.node_id, directory_id),
        core=QuorumConfig(
            cluster_id=cluster_id,
            endpoints=endpoints,
            bootstrap_servers=len(servers),
            election_timeout_ms=config["controller.quorum.election.timeout.ms"],
            fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
            election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
            request_timeout_ms=config["controller.quorum.request.timeout.ms"],
            retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
            fetch_wait_max_ms=min(_FETCH_WAIT_MAX_MS, config["controller.quorum.request.timeout.ms"] // 2),
            snapshot_bytes_max=config["controller.quorum.fetch.snapshot.max.bytes"],
        ),
        static_voters=VoterSet(voters) if voters else None,
        listener=listener,
        bootstrap_servers=tuple((server.host, server.port) for server in servers),
        fetch_bytes_max=config["controller.quorum.fetch.max.bytes"],
        snapshots=SnapshotPolicy(
            bytes_between=config["metadata.log.max.record.bytes.between.snapshots"],
            interval_ms=config["metadata.log.max.snapshot.interval.ms"],
            retention_bytes=config["metadata.max.retention.bytes"],
            retention_ms=config["metadata.max.retention.ms"],
        ),
    )


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """How the metadata log keeps its data: forever, until a snapshot covers it."""
    segment_bytes = config["internal.metadata.log.segment.bytes"] or config["metadata.log.segment.bytes"]
    return LogConfig(
        cleanup_delete=False,
        flush_on_acks_all=True,
        max_message_bytes=2**31 - 1,
        segment_bytes=segment_bytes,
        segment_ms=config["metadata.log.segment.ms"],
        segment_preallocate_bytes=0,
    )
