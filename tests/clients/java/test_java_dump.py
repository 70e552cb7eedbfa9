"""Apache Kafka reads our files: segments, indexes, snapshots, checkpoints and the metadata log, with its own tools."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from clients.java.record_book import RecordBook, SentRecord, sample_records
from headrace.cores.producers import ProducerStates
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.storage.files import RealFiles
from headrace.storage.log import Log

DUMP = "org.apache.kafka.tools.DumpLogSegments"
RECORDS = 4000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def written(java, new_broker, tmp_path_factory):
    """The log directory of a broker that was filled by five idempotent producers and stopped."""
    place = tmp_path_factory.mktemp("dump")
    book = RecordBook("dumped", _padded(sample_records(RECORDS, 1)))
    broker = new_broker(place / "broker")
    try:
        broker.format()
        broker.start()
        settings = ("retention.ms=-1", "segment.bytes=1048576", "index.interval.bytes=1000")
        java.check("Topics", broker.bootstrap, "create", "dumped", 1, *settings)
        share = RECORDS // len(CODECS)
        for number, codec in enumerate(CODECS):
            part = RecordBook("dumped", [*book.records[: share * (number + 1)]])
            file = part.write(place / "records.jsonl", first=share * number)
            java.check("Produce", broker.bootstrap, file, f"compression.type={codec}", "batch.size=5000", "linger.ms=5")
        broker.stop()
        yield broker.log_dir, book
    finally:
        broker.remove()


@pytest.fixture
def dump(java):
    """Runs kafka-dump-log on files."""

    def run(files: list[Path], *options: str) -> str:
        assert files
        return java.check(DUMP, "--files", ",".join(map(str, files)), *options, timeout_s=120).out

    return run


def test_segments(written, dump):
    """Does kafka-dump-log read every batch of every segment: valid, dense, with its codec and its producer?"""
    log_dir, _ = written
    segments = sorted((log_dir / "dumped-0").glob("*.log"))

    output = dump(segments)

    batches = re.findall(
        r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*producerId: (\d+) .*compresscodec: (\w+) .*isvalid: (\w+)",
        output,
    )
    expected_base = 0
    for base, last, count, _, _, valid in batches:
        assert (expected_base, "true") == (int(base), valid)
        assert int(last) - int(base) + 1 == int(count)
        expected_base = int(last) + 1
    starts = [int(start) for start in re.findall(r"Log starting offset: (\d+)", output)]
    assert expected_base == RECORDS
    assert len(starts) > 2
    assert [int(segment.stem) for segment in segments] == starts
    assert len({producer for *_, producer, _, _ in batches}) == len(CODECS)
    assert {codec.lower() for *_, codec, _ in batches} == set(CODECS)


def test_records(written, dump):
    """Does it decode every record inside, with the offsets and times we gave it?"""
    log_dir, book = written

    output = dump(sorted((log_dir / "dumped-0").glob("*.log")), "--print-data-log")

    seen = re.findall(
        r"^\| offset: (\d+) CreateTime: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) ", output, re.MULTILINE
    )
    expected = [
        (offset, record.timestamp, _size(record.key), _size(record.value)) for offset, record in enumerate(book.records)
    ]
    assert expected == [tuple(map(int, fields)) for fields in seen]


def test_indexes(written, dump):
    """Do the offset and time indexes agree with the segments, entry by entry, and pass Kafka's sanity checks?"""
    log_dir, _ = written
    indexes = sorted((log_dir / "dumped-0").glob("*index"))

    entries = dump(indexes)
    sanity = dump(indexes, "--index-sanity-check")

    for complaint in ("mismatch", "Mismatch", "out of order", "Found", "Error", "error"):
        assert complaint not in entries
    assert len(re.findall(r"^offset: \d+ position: \d+", entries, re.MULTILINE)) > 10
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", entries, re.MULTILINE)) > 10
    assert len(indexes) == sanity.count("passed sanity check")


def test_producer_snapshots(written, dump):
    """Does it read the producer snapshots, and does the last one know all five producers?"""
    log_dir, _ = written
    snapshots = sorted((log_dir / "dumped-0").glob("*.snapshot"))

    last = dump(snapshots[-1:])
    everything = dump(snapshots)

    producers = re.findall(r"producerId: (\d+) producerEpoch: 0 .*lastSequence: (\d+) lastOffset: (\d+)", last)
    share = RECORDS // len(CODECS)
    assert int(snapshots[-1].stem) == RECORDS
    assert [(share - 1, share * (number + 1) - 1) for number in range(len(CODECS))] == sorted(
        (int(sequence), int(offset)) for _, sequence, offset in producers
    )
    assert len(snapshots) == everything.count("Dumping ")


def test_transactions(tmp_path, dump):
    """Does it read our markers, and the index of what was aborted, segment by segment?"""
    path = tmp_path / "bank-0"
    producers = ProducerStates()
    config = LogConfig(segment_bytes=500, retention_ms=-1)
    log = Log.open(
        RealFiles(),
        str(path),
        config=config,
        now_ms=0,
        clean_shutdown=False,
        recovery_point=0,
        log_start_offset=0,
        producers=producers,
    )
    ended = []
    for number in range(12):
        marker = EndTransactionMarker(committed=number % 3 == 0, coordinator_epoch=4, timestamp_ms=9)
        data = build_batch(
            [NewRecord(1)] * 2, producer_id=7, producer_epoch=0, base_sequence=2 * number, transactional=True
        )
        for batch in (data, build_end_marker(marker, producer_id=7, producer_epoch=0)):
            offset = log.append(memoryview(batch), read_header(batch), leader_epoch=0, now_ms=0)
            aborted = producers.replay(read_header(batch), memoryview(batch))
            if aborted is not None:
                log.note_aborted(aborted)
        ended.append(("COMMIT" if marker.committed else "ABORT", offset))
    log.close(0)

    markers = dump(sorted(path.glob("*.log")), "--print-data-log")
    indexes = sorted(path.glob("*.txnindex"))
    entries = dump(indexes)

    seen = re.findall(r"offset: (\d+) .*endTxnMarker: (\w+) coordinatorEpoch: (\d+)", markers)
    assert [(str(offset), kind, "4") for kind, offset in ended] == seen
    assert "isvalid: false" not in markers
    found = re.findall(
        r"version: 0 producerId: 7 firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", entries
    )
    expected = [(offset - 2, offset, offset + 1) for kind, offset in ended if kind == "ABORT"]
    assert expected == [tuple(map(int, fields)) for fields in found]
    assert len(indexes) > 1


def test_checkpoints(written, java):
    """Do Kafka's own classes read the checkpoints, the topic id and meta.properties?"""
    log_dir, _ = written

    facts = java.check("ReadCheckpoints", log_dir, "dumped-0").lines()

    assert "epoch 0 0" in facts
    assert f"recovery-point dumped-0 {RECORDS}" in facts
    assert any(re.fullmatch(r"topic-id [\w-]{22}", fact) for fact in facts)
    assert any(re.fullmatch(r"meta V1 1 [\w-]{22} [\w-]{22}", fact) for fact in facts)


def test_cluster_metadata(written, dump):
    """Does the metadata log decode, record by record, into the topic we made?"""
    log_dir, _ = written
    (segment,) = (log_dir / "__cluster_metadata-0").glob("*.log")

    output = dump([segment], "--cluster-metadata-decoder")

    assert "Could not decode" not in output
    assert "isvalid: false" not in output
    assert re.search(r'payload: \{"type":"TOPIC_RECORD","version":0,"data":\{"name":"dumped"', output)
    assert re.search(r'"type":"PARTITION_RECORD".*"partitionId":0.*"replicas":\[1\].*"leader":1', output)
    assert re.search(
        r'"type":"CONFIG_RECORD".*"resourceName":"dumped","name":"segment.bytes","value":"1048576"', output
    )
    assert '"type":"FEATURE_LEVEL_RECORD"' in output


def _padded(records: list[SentRecord]) -> list[SentRecord]:
    """The records with so much noise in them that no codec keeps them within one segment."""
    noise = random.Random(3)
    return [replace(record, value=record.value and record.value + noise.randbytes(900)) for record in records]


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
