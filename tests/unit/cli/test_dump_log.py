"""kafka-dump-log on files made here; that Kafka's tool prints the same is for the tests with Java."""

import json
import struct

import pytest

from headrace.cli.dump_log import main
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue
from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.storage.producer_snapshot import encode_snapshot
from headrace.wire.coordinator_records import GROUP_RECORDS

NAME = "00000000000000000005"


@pytest.fixture
def dump(capsys):
    """Runs the tool on files; gives its exit code and what it printed."""

    def run(*files, options=()):
        code = main(["--files", ",".join(map(str, files)), *options], "kafka-dump-log")
        shown = capsys.readouterr()
        return code, shown.out.splitlines(), shown.err

    return run


def segment(tmp_path, *batches, suffix=b""):
    """A segment with these batches."""
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(map(bytes, batches)) + suffix)
    return path


def two_batches():
    """Two records and the end of their transaction."""
    records = [NewRecord(1000, b"k", b"v", (("h", b"x"),)), NewRecord(1001, None, None)]
    data = build_batch(
        records, base_offset=5, leader_epoch=2, producer_id=7, producer_epoch=1, base_sequence=3, transactional=True
    )
    marker = EndTransactionMarker(committed=True, coordinator_epoch=4, timestamp_ms=1002)
    return data, build_end_marker(marker, producer_id=7, producer_epoch=1, base_offset=7, leader_epoch=2)


def test_records_and_markers(dump, tmp_path):
    """Are batches, records and control records printed as Kafka prints them?"""
    path = segment(tmp_path, *two_batches())
    code, lines, err = dump(path, options=["--print-data-log"])

    assert (code, err) == (0, "")
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 5"]
    assert lines[2].startswith(
        "baseOffset: 5 lastOffset: 6 count: 2 baseSequence: 3 lastSequence: 4 producerId: 7 producerEpoch: 1 "
        "partitionLeaderEpoch: 2 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 1001 size: "
    )
    assert lines[2].endswith("isvalid: true")
    assert lines[3:5] == [
        "| offset: 5 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: 3 headerKeys: [h] key: k payload: v",
        "| offset: 6 CreateTime: 1001 keySize: -1 valueSize: -1 sequence: 4 headerKeys: []",
    ]
    assert lines[6] == (
        "| offset: 7 CreateTime: 1002 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        "endTxnMarker: COMMIT coordinatorEpoch: 4"
    )


def test_shallow_and_without_metadata(dump, tmp_path):
    """Are records left out where nobody asks for them, and their metadata where it is not wanted?"""
    path = segment(tmp_path, *two_batches())

    assert len(dump(path)[1]) == 4
    assert dump(path, options=["--print-data-log", "--skip-record-metadata"])[1][3] == "| key: k payload: v"


def test_damage(dump, tmp_path):
    """Is a batch whose CRC is wrong shown as invalid, are bytes behind the last batch counted, and gaps told?"""
    first, marker = two_batches()
    far = build_batch([NewRecord(1, None, b"far")], base_offset=20)
    broken = bytearray(marker)
    broken[-1] ^= 1
    path = segment(tmp_path, first, far, suffix=b"\0\0\0")
    _, lines, err = dump(path, options=["--deep-iteration"])
    _, shallow, _ = dump(segment(tmp_path, broken))

    assert lines[-1] == f"Found 3 invalid bytes at the end of {NAME}.log"
    assert err == f"Non-consecutive offsets in {path}\n  6 is followed by 20\n"
    assert shallow[2].endswith("isvalid: false")


def test_room(dump, tmp_path):
    """Are zeros behind the batches of a segment that grows told from damage?"""
    first, marker = two_batches()
    path = segment(tmp_path, first, marker, suffix=bytes(100))
    code, lines, err = dump(path)
    damaged, _, told = dump(segment(tmp_path, first, suffix=bytes(99) + b"x"))

    assert (code, err) == (0, "")
    assert len(lines) == 5
    assert lines[-1] == f"Found 100 bytes of room at the end of {NAME}.log"
    assert damaged == 1
    assert "What follows cannot be read." in told


def test_a_time_that_is_not_there(dump, tmp_path):
    """Is an entry for what is not in a segment that grows told, not an accident?"""
    segment(tmp_path, build_batch([NewRecord(10, None, b"x")], base_offset=5), suffix=bytes(100))
    times = tmp_path / f"{NAME}.timeindex"
    times.write_bytes(struct.pack(">qi", 20, 1))
    (tmp_path / f"{NAME}.index").write_bytes(b"")

    assert "offset: 6" in str(dump(times))


def test_offsets(dump, tmp_path):
    """Are committed offsets decoded, forgotten ones named, and unknown records passed over?"""
    key, value = GROUP_RECORDS.encode(
        OffsetCommitKey(group="g", topic="t", partition=1), OffsetCommitValue(offset=9, commit_timestamp=5)
    )
    records = [NewRecord(1, key, value), NewRecord(1, key, None), NewRecord(1, struct.pack(">h", 999), None)]
    path = segment(tmp_path, build_batch(records, base_offset=5))
    _, lines, _ = dump(path, options=["--offsets-decoder", "--skip-record-metadata"])

    shown = '{"type":"1","data":{"group":"g","topic":"t","partition":1}}'
    assert lines[3:] == [
        (
            f'| key: {shown} payload: {{"version":"4","data":{{"offset":9,"leaderEpoch":-1,"metadata":"",'
            '"commitTimestamp":5}}'
        ),
        f"| key: {shown} payload: <DELETE>",
        "| key: Unknown record type 999 at offset 7, skipping.",
    ]


def test_indexes(dump, tmp_path):
    """Are entries printed, held against the log, and checked as at a broker's start?"""
    first, second = (build_batch([NewRecord(time, None, b"x")], base_offset=at) for at, time in ((5, 10), (6, 20)))
    segment(tmp_path, first, second)
    index, times = tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.timeindex"
    index.write_bytes(struct.pack(">ii", 1, len(first)))
    times.write_bytes(struct.pack(">qi", 20, 1))

    assert dump(index)[1:] == ([f"Dumping {index}", f"offset: 6 position: {len(first)}"], "")
    assert dump(times)[1:] == ([f"Dumping {times}", "timestamp: 20 offset: 6"], "")
    assert dump(index, options=["--verify-index-only"])[1:] == ([f"Dumping {index}"], "")
    assert dump(index, options=["--index-sanity-check"])[1][1] == f"{index} passed sanity check."
    index.write_bytes(struct.pack(">ii", 1, 0))
    times.write_bytes(struct.pack(">qi", 99, 1))
    assert dump(index)[2] == f"Mismatches in :{index}\n  Index offset: 6, log offset: 5\n"
    assert dump(times)[2] == f"Found timestamp mismatch in :{times}\n  Index timestamp: 99, log timestamp: 20\n"
    index.write_bytes(b"\0" * 9)
    code, _, err = dump(index, options=["--index-sanity-check"])
    assert code == 1
    assert "neither positive nor a multiple of 8" in err
    index.write_bytes(b"")
    assert dump(index)[1][1] == f"{index} is empty."


def test_producers_and_aborted_transactions(dump, tmp_path):
    """Are the producers of a snapshot and the aborted transactions of a segment printed as Kafka prints them?"""
    snapshot, aborted = tmp_path / f"{NAME}.snapshot", tmp_path / f"{NAME}.txnindex"
    batch = ProducerBatch(3, 5, 10, 12, 999)
    snapshot.write_bytes(
        encode_snapshot([ProducerEntry(7, 1, 2, 1000, 8, (batch,)), ProducerEntry(9, 0, -1, 5, -1, ())])
    )
    aborted.write_bytes(struct.pack(">hqqqq", 0, 7, 1, 4, 5))

    last = "firstSequence: 3 lastSequence: 5 lastOffset: 12 offsetDelta: 2 timestamp: 1000"
    first = "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 currentTxnFirstOffset: OptionalLong[8]"
    second = "producerId: 9 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty"
    assert dump(snapshot)[1][1:] == [f"{first} lastTimestamp: 1000 {last}", f"{second} lastTimestamp: 5 "]
    assert dump(aborted)[1][1] == "version: 0 producerId: 7 firstOffset: 1 lastOffset: 4 lastStableOffset: 5"


def test_json(dump, tmp_path):
    """Is everything one document for programs?"""
    code, lines, _ = dump(segment(tmp_path, *two_batches()), options=["--print-data-log", "--output", "json"])
    (document,) = json.loads("\n".join(lines))

    assert code == 0
    assert [batch["baseOffset"] for batch in document["entries"]] == [5, 7]
    assert document["entries"][0]["records"][0]["payload"] == "v"


@pytest.mark.parametrize(
    ("name", "expected"), [("absent.log", "Cannot read "), ("odd.checkpoint", "is not a snapshot's name")]
)
def test_files_that_cannot_be_read(dump, tmp_path, name, expected):
    """Does a missing or misnamed file end in one sentence and exit code 1?"""
    path = tmp_path / name
    if name.startswith("odd"):
        path.write_bytes(b"")
    code, _, err = dump(path)

    assert code == 1
    assert expected in err or 'For input string: "absent"' in err


def test_files_nobody_knows(dump, tmp_path):
    """Is a file of another kind passed over with a word, as Kafka does?"""
    path = tmp_path / "leader-epoch-checkpoint"

    assert dump(path) == (0, [f"Dumping {path}"], f"Ignoring unknown file {path}\n")
