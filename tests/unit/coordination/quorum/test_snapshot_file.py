"""Snapshots of the metadata as files."""

from uuid import UUID

import pytest

from headrace.coordination.quorum.snapshot_file import SnapshotFiles, read_snapshot, snapshot_batches, snapshot_name
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import FeatureLevelRecord, TopicRecord
from headrace.records.batch import CorruptBatch, seal, split_batches
from headrace.storage.memory_files import MemoryFiles

ID = OffsetAndEpoch(4200, 3)
VOTERS = VoterSet([Voter(ReplicaKey(1, UUID(int=999)), (Endpoint("CONTROLLER", "one", 9093),))])
RECORDS = [TopicRecord(name=f"topic-{n}", topic_id=UUID(int=n + 1000)) for n in range(2500)]


@pytest.fixture
def files():
    """A disk with the directory of the log."""
    files = MemoryFiles()
    files.mkdir("/log")
    files.fsync_dir("/")
    return files


@pytest.fixture
def snapshots(files):
    """The snapshots on it."""
    return SnapshotFiles(files, "/log")


def write(snapshots, snapshot_id=ID, records=RECORDS, voters=VOTERS):
    """Write a snapshot."""
    return snapshots.write(snapshot_id, records, timestamp_ms=77, voters=voters, now_ms=5)


def test_names_are_kafkas():
    """Has a snapshot Kafka's name?"""
    assert snapshot_name(ID) == "00000000000000004200-0000000003.checkpoint"


def test_round_trip(snapshots, files):
    """Does a snapshot hold what was put into it, after a power cut too, and nothing else lie about?"""
    size = write(snapshots)
    files.power_cut()

    snapshot = snapshots.read(ID)
    assert (77, VOTERS, RECORDS) == (snapshot.timestamp_ms, snapshot.voters, snapshot.records)
    assert [ID] == snapshots.ids()
    assert [snapshot_name(ID)] == files.listdir("/log")
    head = snapshots.head(ID)
    assert (size, 77, VOTERS) == (head.size, head.timestamp_ms, head.voters)


def test_offsets_are_dense_and_of_one_epoch():
    """Do the batches of a snapshot follow each other from 0, all in its epoch, control batches at both ends?"""
    data = b"".join(snapshot_batches(RECORDS, epoch=3, timestamp_ms=0, voters=None, now_ms=0))

    headers = [header for _, header in split_batches(data)]
    assert [0, *(header.next_offset for header in headers[:-1])] == [header.base_offset for header in headers]
    assert {3} == {header.leader_epoch for header in headers}
    assert [True, False, False, False, True] == [header.is_control for header in headers]
    assert 2502 == headers[-1].next_offset


def test_pieces(snapshots, files):
    """Does a snapshot that is handed over in pieces arrive whole, and is it there only then?"""
    size = write(snapshots)
    files.mkdir("/other")
    receiver = SnapshotFiles(files, "/other")
    position = 0
    while position < size:
        told, piece = snapshots.piece(ID, position, 10_000)
        assert size == told
        assert [] == receiver.ids()
        receiver.add_piece(ID, position, piece)
        position += len(piece)

    assert receiver.complete(ID).records == RECORDS
    assert [ID] == receiver.ids()


def test_a_snapshot_that_is_begun_anew(snapshots, files):
    """Does position 0 throw away what was there of a snapshot before?"""
    write(snapshots, records=RECORDS[:10])
    _, data = snapshots.piece(ID, 0, 1 << 20)
    files.mkdir("/other")
    receiver = SnapshotFiles(files, "/other")

    receiver.add_piece(ID, 0, b"x" * 100_000)
    receiver.add_piece(ID, 0, data)

    assert receiver.complete(ID).records == RECORDS[:10]


@pytest.mark.parametrize("harm", [lambda data: data[:-10], lambda data: data + b"x", lambda data: b""])
def test_harm_is_seen(harm):
    """Is a snapshot without its end, or with something behind it, refused?"""
    data = b"".join(snapshot_batches(RECORDS[:5], epoch=1, timestamp_ms=0, voters=None, now_ms=0))

    with pytest.raises(CorruptBatch):
        read_snapshot(harm(data))


def test_a_rotten_snapshot_is_refused(snapshots, files):
    """Is a flipped bit noticed?"""
    write(snapshots)
    files.flip_bit(f"/log/{snapshot_name(ID)}", 5000)

    with pytest.raises(StorageFault):
        snapshots.read(ID)


def test_incomplete_pieces_are_not_kept(snapshots, files):
    """Is a snapshot of which a part is missing thrown away when it is taken for complete?"""
    write(snapshots, records=RECORDS[:10])
    _, data = snapshots.piece(ID, 0, 1 << 20)
    files.mkdir("/other")
    receiver = SnapshotFiles(files, "/other")
    receiver.add_piece(ID, 0, data[:-5])

    with pytest.raises(StorageFault):
        receiver.complete(ID)

    assert [] == files.listdir("/other")


def test_a_full_disk_leaves_nothing(snapshots, files):
    """Is half of a snapshot removed when the disk is full?"""
    files.fail_next("write", 28)

    with pytest.raises(StorageFault):
        write(snapshots)

    assert [] == files.listdir("/log")


def test_what_interruptions_leave_is_cleared(snapshots, files):
    """Are partial and deleted snapshots removed at start, Kafka's as well, and nothing else?"""
    write(snapshots)
    for name in (
        "00000000000000000009-0000000001.checkpoint.part",
        "00000000000000000009-0000000001.checkpoint.deleted",
        "00000000000000000009-0000000001-8831294.checkpoint.part",
        "00000000000000000000.log",
    ):
        files.open(f"/log/{name}", create=True)

    snapshots.clear()

    assert {snapshot_name(ID), "00000000000000000000.log"} == set(files.listdir("/log"))


def test_old_ones_go(snapshots):
    """Are snapshots removed that are older than one, by epoch first?"""
    older, newer = OffsetAndEpoch(4300, 2), OffsetAndEpoch(4201, 3)
    for one in (older, ID, newer):
        write(snapshots, one, RECORDS[:1])

    snapshots.remove_before(ID)

    assert [ID, newer] == snapshots.ids()


def test_one_that_is_gone(snapshots):
    """Is there no piece of a snapshot that was removed, rather than an error?"""
    assert snapshots.piece(ID, 0, 100) is None
    assert (0, 0, None) == (snapshots.head(ID).size, snapshots.head(ID).timestamp_ms, snapshots.head(ID).voters)


def test_unknown_records_are_refused():
    """Is a snapshot with a record of later days refused, rather than taken over without it?"""
    (first, *rest) = snapshot_batches(
        [FeatureLevelRecord(name="x", feature_level=1)], epoch=1, timestamp_ms=0, voters=None, now_ms=0
    )
    harmed = bytes(rest[0]).replace(b"\x01\x0c", b"\x01\x7b")
    sealed = bytearray(harmed)
    seal(sealed)

    with pytest.raises(StorageFault):
        read_snapshot(bytes(first) + bytes(sealed) + bytes(rest[1]))
