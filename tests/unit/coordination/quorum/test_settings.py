"""The quorum's settings from the node's."""

from uuid import UUID

from headrace.coordination.quorum.settings import metadata_log_config, quorum_settings
from headrace.cores.raft.voters import Endpoint, ReplicaKey
from headrace.settings.broker import BrokerConfig

PROPERTIES = {
    "process.roles": "controller",
    "node.id": "2",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:0",
    "log.dirs": "/data",
}


def settings(**more):
    """The settings of a node with these properties."""
    config = BrokerConfig.from_properties(PROPERTIES | {name.replace("_", "."): value for name, value in more.items()})
    return config, quorum_settings(config, cluster_id="c", directory_id=UUID(int=5))


def test_static_voters():
    """Are the voters of the settings known with where they listen, and is nobody else asked?"""
    _, found = settings(
        controller_quorum_voters="1@one:9093,2@two:9094", controller_quorum_bootstrap_servers="three:9095"
    )

    assert ReplicaKey(2, UUID(int=5)) == found.key
    assert {1: (Endpoint("CONTROLLER", "one", 9093),), 2: (Endpoint("CONTROLLER", "two", 9094),)} == {
        node_id: voter.endpoints for node_id, voter in found.static_voters.by_id.items()
    }
    assert (0, ()) == (found.core.bootstrap_servers, found.bootstrap_servers)


def test_bootstrap_servers():
    """Are there no static voters where only servers to ask are named?"""
    _, found = settings(controller_quorum_bootstrap_servers="one:9093,two:9094")

    assert found.static_voters is None
    assert (2, (("one", 9093), ("two", 9094))) == (found.core.bootstrap_servers, found.bootstrap_servers)


def test_alone():
    """Is a node that is its own quorum the only voter, where the settings name none?"""
    config, _ = settings(controller_quorum_bootstrap_servers="localhost:9093")

    found = quorum_settings(config, cluster_id="c", directory_id=None, alone=True)

    assert [2] == list(found.static_voters.by_id)
    assert (0, ()) == (found.core.bootstrap_servers, found.bootstrap_servers)


def test_knobs():
    """Do the knobs have the values of the settings?"""
    config, found = settings(
        controller_quorum_voters="2@two:9094",
        controller_quorum_election_timeout_ms="11",
        controller_quorum_fetch_timeout_ms="12",
        controller_quorum_election_backoff_max_ms="13",
        controller_quorum_request_timeout_ms="14",
        controller_quorum_retry_backoff_ms="15",
        controller_quorum_fetch_max_bytes="16",
        controller_quorum_fetch_snapshot_max_bytes="17",
        metadata_log_max_record_bytes_between_snapshots="18",
        metadata_log_max_snapshot_interval_ms="19",
        metadata_max_retention_bytes="20",
        metadata_max_retention_ms="21",
        metadata_log_segment_bytes="9000000",
        metadata_log_segment_ms="22",
    )

    core, snapshots, log = found.core, found.snapshots, metadata_log_config(config)
    assert [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 9_000_000, 22] == [
        core.election_timeout_ms,
        core.fetch_timeout_ms,
        core.election_backoff_max_ms,
        core.request_timeout_ms,
        core.retry_backoff_ms,
        found.fetch_bytes_max,
        core.snapshot_bytes_max,
        snapshots.bytes_between,
        snapshots.interval_ms,
        snapshots.retention_bytes,
        snapshots.retention_ms,
        log.segment_bytes,
        log.segment_ms,
    ]
    assert not log.cleanup_delete
