"""Snapshots of the metadata."""

from controller_shell import ControllerShell
from headrace.cores.controller.partition_changes import partitions_in_elr, partitions_in_isr
from headrace.cores.controller.snapshot import snapshot_records
from headrace.cores.metadata import RESOURCE_BROKER, Metadata
from headrace.model.metadata_records import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record


def lively() -> ControllerShell:
    """A cluster in which a few things happened."""
    cluster = ControllerShell(brokers=3, racks=2, elr=True)
    cluster.create("a", (1, 2, 3), (2, 3, 1), min_insync_replicas="2", retention_ms="5")
    cluster.create("b", (1,))
    cluster.silence(1)
    cluster.commit(
        [
            ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="1", name="x", value="y"),
            ProducerIdsRecord(next_producer_id=3000),
        ]
    )
    return cluster


def test_snapshot_makes_an_equal_state():
    """Is the state after a snapshot, also one that went through bytes, what it was?"""
    cluster = lively()
    again, from_bytes = Metadata(), Metadata()

    for record in snapshot_records(cluster.metadata):
        again.replay(record)
        from_bytes.replay(decode_metadata_record(encode_metadata_record(record)))

    assert cluster.metadata == again
    assert cluster.metadata == from_bytes
    assert cluster.partition("b").last_known_elr == (1,)


def test_metadata_version_comes_first():
    """Does a reader know how to read on from the first record?"""
    first = next(iter(snapshot_records(lively().metadata)))

    assert FeatureLevelRecord(name="metadata.version", feature_level=25) == first


def test_states_that_differ_are_not_equal():
    """Does a difference anywhere make two states unequal?"""
    one, other = lively(), lively()
    assert one.metadata == other.metadata

    other.metadata.replay(ProducerIdsRecord(next_producer_id=4000))

    assert one.metadata != other.metadata
    assert one.metadata.index != "an index"
    assert one.metadata != "metadata"


def test_partitions_of_a_broker_are_found_without_looking_at_others():
    """Does the index know where a broker is in sync and where it is eligible?"""
    cluster = lively()
    a, b = (cluster.metadata.topics[name].topic_id for name in ("a", "b"))

    assert {(a, 0), (a, 1)} == set(partitions_in_isr(cluster.metadata, 2))
    assert [] == partitions_in_isr(cluster.metadata, 1)
    assert [(b, 0)] == partitions_in_elr(cluster.metadata, 1)
    assert {2: 2} == cluster.metadata.index.leaders
    assert {(b, 0)} == cluster.metadata.index.leaderless
