"""Damage that once went wrong: each is told in the log, costs its own partition at most, and destroys nothing more."""

import logging
import struct
import time
from pathlib import Path

import pytest

from crash.log_reader import batches_from, records_of
from headrace.model.errors import ErrorCode, HeadraceError
from headrace.records.build import NewRecord, build_batch
from headrace.testing import Cluster
from wire_client import WireClient

PARTITIONS = 3
BATCHES = 40
MINUTE_MS = 60_000


def write(client: WireClient, topic: str, partition: int, first_ms: int) -> None:
    """Batches a minute apart."""
    for number in range(BATCHES):
        record = NewRecord(first_ms + number * MINUTE_MS, None, b"value %d" % number, ())
        assert client.produce(topic, bytes(build_batch([record])), partition=partition).base_offset == number


def values_in(client: WireClient, partition: int) -> list[bytes]:
    """All values of a partition."""
    return [r.value for _, batch in batches_from(client, ("topic", partition), 0) for r in records_of(batch)]


ALL_VALUES = [b"value %d" % number for number in range(BATCHES)]


@pytest.fixture
def first_ms():
    """When the oldest record was written."""
    return time.time_ns() // 1_000_000 - 2 * BATCHES * MINUTE_MS


@pytest.fixture
def stopped(tmp_path, first_ms) -> Path:
    """The directory of a broker that was stopped cleanly, with a topic of several partitions and segments."""
    directory = tmp_path / "data"
    with Cluster(directory=directory) as cluster, WireClient(cluster.port) as client:
        settings = {"internal_segment_bytes": "1000", "index_interval_bytes": "100"}
        assert client.create_topic("topic", partitions=PARTITIONS, **settings).error_code == 0
        for partition in range(PARTITIONS):
            write(client, "topic", partition, first_ms)
    return directory


def replace(path: Path, position: int, data: bytes) -> None:
    """Overwrite a few bytes of a file."""
    whole = bytearray(path.read_bytes())
    whole[position : position + len(data)] = data
    path.write_bytes(whole)


def last_segment(directory: Path) -> Path:
    """The segment that was the active one."""
    return max((directory / "topic-0").glob("*.log"))


def raise_last_offset(directory: Path) -> None:
    """A high bit of the last batch's base offset: nothing but the place of a batch speaks against it."""
    data = last_segment(directory).read_bytes()
    position = last = 0
    while position < len(data):
        last = position
        position += 12 + struct.unpack_from(">i", data, position + 8)[0]
    replace(last_segment(directory), last + 1, b"\x02")


def change_topic_id(directory: Path) -> None:
    """Another topic's id, as good as any."""
    path = directory / "topic-0" / "partition.metadata"
    text = path.read_text()
    path.write_text(text.replace("topic_id: ", "topic_id: A", 1)[: len(text) - 1])


def spoil_topic_id(directory: Path) -> None:
    """No id at all."""
    (directory / "topic-0" / "partition.metadata").write_text("version: 0\ntopic_id: ?\n")


def start_behind_the_end(directory: Path) -> None:
    """A log start that the log never reached."""
    (directory / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 90000\n")


@pytest.mark.parametrize("damage", [raise_last_offset, change_topic_id, spoil_topic_id, start_behind_the_end])
def test_one_partition_is_refused(stopped, damage, caplog):
    """Is a partition that cannot be right refused, told, and left as it is, while the others are served?"""
    caplog.set_level(logging.ERROR)
    damage(stopped)
    before = {path.name: path.read_bytes() for path in (stopped / "topic-0").iterdir()}
    with Cluster(directory=stopped) as cluster, WireClient(cluster.port) as client:
        refused = client.fetch("topic", 0)
        others = [values_in(client, partition) for partition in (1, 2)]
        batch = bytes(build_batch([NewRecord(1, None, b"new", ())]))
        not_written = client.produce("topic", batch)
        written = client.produce("topic", batch, partition=1)

    assert refused.error_code in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
    assert not_written.error_code in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
    assert others == [ALL_VALUES, ALL_VALUES]
    assert (written.error_code, written.base_offset) == (0, BATCHES)
    assert [r.getMessage() for r in caplog.records if "partition_offline name=topic-0" in r.getMessage()]
    assert {path.name: path.read_bytes() for path in (stopped / "topic-0").iterdir()} == before


def test_topic_with_a_refused_partition_can_be_deleted(stopped):
    """Does a deletion take every partition, and does a new topic of that name begin empty?"""
    spoil_topic_id(stopped)
    with (
        Cluster({"log.segment.delete.delay.ms": "0"}, directory=stopped) as cluster,
        WireClient(cluster.port) as client,
    ):
        deleted = client.delete_topic("topic")
        gone = [client.fetch("topic", 0, partition=partition).error_code for partition in range(PARTITIONS)]
        created = client.create_topic("topic", partitions=PARTITIONS)
        fresh = [values_in(client, partition) for partition in range(PARTITIONS)]

    assert (deleted.error_code, created.error_code) == (0, 0)
    assert gone == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * PARTITIONS
    assert fresh == [[]] * PARTITIONS


@pytest.mark.parametrize("position", [3, 71], ids=["base offset", "contents"])
def test_damaged_metadata_stops_the_start(stopped, position):
    """Does a broker with damaged metadata refuse to start, say why, and leave every partition where it is?"""
    log = stopped / "__cluster_metadata-0" / f"{0:020d}.log"
    replace(log, position, bytes([log.read_bytes()[position] ^ 4]))
    before = sorted(path.name for path in stopped.iterdir() if path.is_dir())

    with pytest.raises(HeadraceError, match="metadata"):
        Cluster(directory=stopped).start()
    assert sorted(path.name for path in stopped.iterdir() if path.is_dir()) == before


def lower_time(index: Path, *, entry: int, by_ms: int) -> None:
    """Have an entry of a time index claim an earlier time."""
    (timestamp,) = struct.unpack_from(">q", index.read_bytes(), 12 * entry)
    replace(index, 12 * entry, struct.pack(">q", timestamp - by_ms))


def test_wrong_time_in_an_index_skips_nothing(stopped, first_ms):
    """Is the first record of a time found, though the time index says it lies further on (A28)?"""
    for index in (stopped / "topic-0").glob("*.timeindex"):
        if len(index.read_bytes()) >= 36:
            lower_time(index, entry=1, by_ms=MINUTE_MS + 1)
    with Cluster(directory=stopped) as cluster, WireClient(cluster.port) as client:
        found = [client.list_offset("topic", first_ms + number * MINUTE_MS).offset for number in range(BATCHES)]

    assert found == list(range(BATCHES))


def test_wrong_time_in_an_index_deletes_nothing(stopped):
    """Does retention keep a segment whose time index makes it look older than it is?"""
    retention_ms = (2 * BATCHES + 3) * MINUTE_MS
    for index in (stopped / "topic-0").glob("*.timeindex"):
        for entry in range(len(index.read_bytes()) // 12):
            lower_time(index, entry=entry, by_ms=2 * BATCHES * MINUTE_MS)
    with Cluster({"log.retention.ms": str(retention_ms)}, directory=stopped) as cluster:
        cluster.call(cluster.broker.housekeeping.retain())
        with WireClient(cluster.port) as client:
            assert values_in(client, 0) == ALL_VALUES


def test_lost_metadata_does_not_cost_the_data(stopped, caplog):
    """Is a partition that no topic claims kept under another name, and told, rather than removed?"""
    for path in (stopped / "__cluster_metadata-0").iterdir():
        path.unlink()
    with Cluster(directory=stopped):
        pass

    strays = [path for path in stopped.iterdir() if path.name.endswith("-stray")]
    assert len(strays) == PARTITIONS
    assert all(any(path.glob("*.log")) for path in strays)
    assert sum("stray_partition" in record.getMessage() for record in caplog.records) == PARTITIONS
