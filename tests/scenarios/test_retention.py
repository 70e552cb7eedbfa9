"""Old data goes: by age, by size, by request; and only then."""

import asyncio
import time

import pytest

from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch

DAY_MS = 24 * 3600 * 1000
EARLIEST, LATEST = -2, -1


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fill(client, topic, *, count, age_ms=0, size=500):
    """Records of a given age, one to a batch, each value telling its offset."""
    for _ in range(count):
        record = NewRecord(timestamp=now_ms() - age_ms, value=b"x" * size)
        result = client.produce(topic, build_batch([record]))
        assert result.error_code == 0


def retain(cluster):
    """Run retention now, and let it finish removing files."""

    async def run():
        await cluster.broker.housekeeping.retain()
        await asyncio.gather(*cluster.broker.housekeeping._removals)

    cluster.call(run())


def segment_files(cluster, topic):
    """The segments on disk, by base offset; what is marked for deletion counts as there."""
    return sorted(path.name for path in (cluster.directory / f"{topic}-0").iterdir() if ".log" in path.name)


def start_of(client, topic):
    return client.list_offset(topic, EARLIEST).offset


@pytest.fixture
def client(cluster, wire):
    return wire(cluster)


SMALL_SEGMENTS = {"internal_segment_bytes": "3000", "file_delete_delay_ms": "0"}


def test_one_week_by_default(cluster, client, topic):
    """Without any setting, do records of more than a week go and younger ones stay (R16)?"""
    client.create_topic(topic, **SMALL_SEGMENTS)
    fill(client, topic, count=10, age_ms=8 * DAY_MS)
    fill(client, topic, count=10, age_ms=6 * DAY_MS)
    before = segment_files(cluster, topic)
    retain(cluster)

    start = start_of(client, topic)
    assert 5 <= start <= 10
    assert segment_files(cluster, topic) == before[before.index(f"{start:020}.log") :]
    assert client.list_offset(topic, LATEST).offset == 20
    assert client.fetch(topic, start).error_code == 0
    assert client.fetch(topic, start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_by_time_per_topic(cluster, client, topic):
    """Does each topic keep for its own retention.ms, and for ever with -1 (R16)?"""
    for name, retention_ms in (("short", "60000"), ("forever", "-1")):
        client.create_topic(f"{topic}-{name}", retention_ms=retention_ms, **SMALL_SEGMENTS)
        fill(client, f"{topic}-{name}", count=8, age_ms=DAY_MS)
    retain(cluster)

    assert start_of(client, f"{topic}-short") == 8
    assert start_of(client, f"{topic}-forever") == 0


def test_everything_expired(cluster, client, topic):
    """When all of a log is too old, does all of it go, and do offsets go on (R14, R16)?"""
    client.create_topic(topic, retention_ms="1000", **SMALL_SEGMENTS)
    fill(client, topic, count=12, age_ms=DAY_MS)
    retain(cluster)

    assert start_of(client, topic) == client.list_offset(topic, LATEST).offset == 12
    assert segment_files(cluster, topic) == ["00000000000000000012.log"]
    assert client.produce(topic, build_batch([NewRecord(timestamp=now_ms(), value=b"new")])).base_offset == 12


def test_by_size(cluster, client, topic):
    """Does a log stay within retention.bytes, plus the segment it is writing to (R16)?"""
    client.create_topic(topic, retention_bytes="10000", **SMALL_SEGMENTS)
    fill(client, topic, count=60)
    retain(cluster)

    size = cluster.ask(lambda broker: broker.partitions.require(topic, 0).log.size_bytes)
    assert 10_000 <= size <= 13_000
    on_disk = sum((cluster.directory / f"{topic}-0" / name).stat().st_size for name in segment_files(cluster, topic))
    assert on_disk == size
    assert client.list_offset(topic, LATEST).offset == 60


def test_setting_changed_while_running(cluster, client, topic):
    """Does a changed retention count from the next run on, without a restart (R11, R16)?"""
    from headrace.wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    client.create_topic(topic, retention_ms="-1", **SMALL_SEGMENTS)
    fill(client, topic, count=10, age_ms=DAY_MS)
    retain(cluster)
    assert start_of(client, topic) == 0
    change = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
    answer = client.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert [result.error_code for result in answer.responses] == [0]
    retain(cluster)

    assert start_of(client, topic) == 10


def test_files_wait_for_readers(cluster, client, topic):
    """Do a deleted segment's files stay aside for file.delete.delay.ms, and go with the next start at the latest?"""
    client.create_topic(topic, internal_segment_bytes="3000", retention_ms="1000")
    fill(client, topic, count=12, age_ms=DAY_MS)
    cluster.call(cluster.broker.housekeeping.retain())
    aside = [name for name in segment_files(cluster, topic) if name.endswith(".deleted")]
    cluster.restart()

    assert len(aside) >= 2
    assert segment_files(cluster, topic) == ["00000000000000000012.log"]


def test_deleted_topic_leaves_no_files(cluster, client, topic):
    """Is a deleted topic's data really removed from the disk (R16)?"""
    client.create_topic(topic, partitions=3, file_delete_delay_ms="0")
    fill(client, topic, count=3)
    client.delete_topic(topic)

    async def removed():
        await asyncio.gather(*cluster.broker.housekeeping._removals)

    cluster.call(removed())
    assert [path.name for path in cluster.directory.iterdir() if topic in path.name] == []


def test_compacted_topic_keeps_old_records(cluster, client, topic):
    """Does time take nothing from a topic that is only compacted?"""
    client.create_topic(topic, cleanup_policy="compact", retention_ms="1000", **SMALL_SEGMENTS)
    for number in range(10):
        record = NewRecord(timestamp=now_ms() - DAY_MS, key=b"%d" % number, value=b"x" * 500)
        assert client.produce(topic, build_batch([record])).error_code == 0
    retain(cluster)

    assert start_of(client, topic) == 0
