"""Log dirs from before there was a quorum, nodes that found one, and what a cluster begins with."""

from uuid import UUID

import pytest

from headrace.broker.features import LevelNotServed, level_records
from headrace.broker.formatting import first_records
from headrace.broker.store import METADATA_CONFIG, METADATA_LOG, METADATA_TOPIC_ID
from headrace.coordination.quorum.bootstrap_file import BOOTSTRAP, write_bootstrap
from headrace.cores.metadata import RESOURCE_BROKER
from headrace.cores.producers import ProducerStates
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import FeatureLevelRecord, PartitionRecord, TopicRecord
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.storage.log_dir import LogDir
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.meta_properties import MetaProperties
from headrace.wire.metadata_records import encode_metadata_record

NOW_MS = 1_700_000_000_000
TOPIC_ID, DIRECTORY_ID = UUID(int=3 << 80), UUID(int=4 << 80)
RECORDS = (
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    TopicRecord(name="old", topic_id=TOPIC_ID),
    PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader=1),
)


def old_disk():
    """A disk as a node left it that wrote its metadata log alone: no quorum state, nobody registered, epoch 1."""
    files = MemoryFiles()
    log_dir = LogDir.open(files, "/data")
    log_dir.write_meta(MetaProperties(cluster_id="an-old-cluster", node_id=1, directory_id=DIRECTORY_ID))
    log = log_dir.create_log(
        METADATA_LOG, topic_id=METADATA_TOPIC_ID, config=METADATA_CONFIG, producers=ProducerStates(), now_ms=NOW_MS
    )
    for record in RECORDS:
        batch = build_batch([NewRecord(timestamp=NOW_MS, value=encode_metadata_record(record, 0))])
        log.append(memoryview(batch), read_header(batch), leader_epoch=1, now_ms=NOW_MS)
    log_dir.close(NOW_MS)
    return files


def test_a_node_from_before_the_quorum(open_desk):
    """Does a node keep its cluster, topics and levels when it first takes part in a quorum of its own?"""
    desk = open_desk(files=old_disk())
    metadata = desk.broker.metadata

    assert desk.broker.cluster_id == "an-old-cluster"
    assert metadata.features == {"metadata.version": 25}
    assert (metadata.topics["old"].topic_id, metadata.topics["old"].partitions[0].leader) == (TOPIC_ID, 1)
    desk.produce("old", 3)
    assert not metadata.brokers[1].fenced
    desk.restart()
    assert desk.broker.partitions.require("old", 0).log.log_end_offset == 3


def formatted(levels):
    """A disk that was formatted for these levels."""
    files = MemoryFiles()
    LogDir.open(files, "/data").close(NOW_MS)
    write_bootstrap(files, "/data", level_records(levels), now_ms=NOW_MS)
    return files


def test_levels_that_were_formatted(open_desk):
    """Does a new cluster begin with them, and with the setting that eligible leader replicas need, once only?"""
    levels = {"metadata.version": 30, "eligible.leader.replicas.version": 1, "transaction.version": 2}
    desk = open_desk({"min.insync.replicas": "1"}, files=formatted(levels))

    for _ in range(2):
        assert levels == desk.broker.metadata.features
        assert {"min.insync.replicas": "1"} == desk.broker.metadata.configs(RESOURCE_BROKER, "")
        desk.restart()
    desk.files.unlink(f"/data/{BOOTSTRAP}")
    desk.restart()
    assert levels == desk.broker.metadata.features


def test_levels_that_are_not_served():
    """Is a cluster that was formatted for a later Kafka refused in a sentence?"""
    with pytest.raises(LevelNotServed, match=r"formatted for metadata\.version 31, and 7 to 30 are served"):
        first_records(formatted({"metadata.version": 31}), "/data")


def test_a_format_that_is_damaged():
    """Is a file that is cut off refused by its name, and not taken for a cluster that begins as it likes?"""
    files = formatted({"metadata.version": 30})
    file = files.open(f"/data/{BOOTSTRAP}")
    file.truncate(file.size() - 1)

    with pytest.raises(StorageFault, match=BOOTSTRAP):
        first_records(files, "/data")
