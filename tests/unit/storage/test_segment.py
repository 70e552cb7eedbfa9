"""Does a segment write, index, find, cut, map and truncate its batches?"""

import errno
import threading

import pytest

from headrace.model.log_config import LogConfig
from headrace.records.batch import patch_offsets, read_header
from headrace.storage import batch_file
from headrace.storage.corruption import CorruptLog
from headrace.storage.memory_files import MemoryMapping
from headrace.storage.segment import Segment
from unit.storage.samples import batch

CONFIG = LogConfig(index_interval_bytes=150, segment_index_bytes=10_000)


def make(disk, *, base_offset=0, count=0, size=20) -> Segment:
    """A segment with so many batches of one record, their timestamps 1000, 1001, …"""
    segment = Segment.create(disk.files, disk.root, base_offset, now_ms=0)
    segment.configure(CONFIG)
    for i in range(count):
        put(segment, base_offset + i, 1000 + i, size=size)
    return segment


def put(segment, offset, *timestamps, size=20):
    made = batch(*timestamps, size=size)
    patch_offsets(made, 0, base_offset=offset, leader_epoch=0)
    segment.append(made, offset + len(timestamps) - 1, max(timestamps))


def again(segment: Segment) -> Segment:
    """The same segment as another process would open it."""
    opened = Segment(segment.files, segment.directory, segment.base_offset, size=segment.file.size())
    opened.configure(CONFIG)
    return opened


def test_entries_are_made_where_kafka_makes_them(disk):
    """Is an entry made for the first batch that begins more than an interval behind the last one's?"""
    segment = make(disk, base_offset=100)
    size = len(batch())
    for i in range(6):
        put(segment, 100 + 2 * i, 1000 + i, 900)

    assert size < 150 < 2 * size + 40
    positions = [position for position, *_ in segment.outlines()]
    step = positions[1]
    every = -(-151 // step)
    expected = [(100 + 2 * i + 1, positions[i]) for i in range(every, 6, every)]

    assert [segment.offset_index.entry(i) for i in range(len(segment.offset_index))] == expected

    segment.seal()
    # Rising timestamps: each entry carries the timestamp of its own batch, sealing adds the last.
    assert segment.time_index.last() == (1005, 111)
    assert disk.files.read(segment.path(".index")) == segment.offset_index.encode()
    assert disk.files.read(segment.path(".timeindex")) == segment.time_index.encode()


def test_find(disk):
    """Is every offset found in the batch that holds it, and one behind the end in none?"""
    segment = make(disk)
    offset = 0
    for i in range(40):
        put(segment, offset, *range(1000, 1001 + i % 3))
        offset += 1 + i % 3
    for opened in (segment, again(segment)):
        for wanted in range(offset):
            found = opened.find(wanted)

            assert found is not None
            assert found[1] <= wanted <= found[2]

        assert opened.find(offset) is None


def test_cut(disk):
    """Does a run of batches end within the limit, at a batch, and name the offset there?"""
    segment = make(disk, count=50)
    size = segment.size // 50
    for max_bytes in (size - 1, size, 3 * size, 500, 2000, segment.size - 1):
        stop, end_offset = segment.cut(2 * size, segment.size, max_bytes)

        assert stop - 2 * size <= max_bytes
        assert stop % size == 0
        if max_bytes < size:
            assert (stop, end_offset) == (2 * size, -1)
        else:
            assert end_offset == stop // size
            assert max_bytes - (stop - 2 * size) <= max(max_bytes // 2, 150 + size)


def test_a_wrong_index_is_made_anew(disk):
    """Is an index file that contradicts the log, though well formed, noticed and replaced by one from the log?"""
    segment = make(disk, count=50)
    segment.seal()
    right = segment.offset_index.encode()
    wrong = bytearray(right)
    wrong[7] += 1
    wrong[-1] += 1
    disk.files.open(segment.path(".index")).pwrite(wrong, 0)
    opened = again(segment)

    assert opened.find(49)[1] == 49
    assert opened.offset_index.encode() == right

    wrong[-1] -= 1
    disk.files.open(segment.path(".index")).pwrite(wrong, 0)
    opened = again(segment)

    assert [opened.find(offset)[1] for offset in range(50)] == list(range(50))
    assert opened.cut(0, opened.size, 400)[0] % (segment.size // 50) == 0
    assert opened.offset_index.encode() == right


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("data", [None, b"", b"junk", bytes(24)])
def test_a_useless_index_is_made_anew(memory, kind, data):
    """Is the log found all the same if an index is missing, empty or nonsense?"""
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    segment.configure(CONFIG)
    for i in range(20):
        put(segment, i, 1000 + i)
    segment.seal()
    memory.unlink(segment.path(kind))
    if data is not None:
        memory.open(segment.path(kind), create=True).pwrite(data, 0)
    opened = again(segment)

    assert opened.max_timestamp() == (1019, 19)
    assert opened.find(13)[1] == 13


def test_greatest_timestamp(disk):
    """Is it kept through out-of-order batches, sealing and reopening?"""
    segment = make(disk)
    for offset, timestamp in enumerate([5, 9, 7, 9, 3]):
        put(segment, offset, timestamp)
    segment.seal()

    assert segment.max_timestamp() == (9, 1)
    assert again(segment).max_timestamp() == (9, 1)
    assert again(segment).first_timestamp() == 5
    assert make(disk, base_offset=77).first_timestamp() == -1


def test_full_index(disk):
    """Is the segment called full when no entry fits any more, with one kept free for sealing?"""
    segment = make(disk)
    segment.configure(LogConfig(index_interval_bytes=1, segment_index_bytes=48))
    count = 0
    while not segment.index_full:
        put(segment, count, 1000 + count)
        count += 1
    segment.seal()

    assert len(segment.offset_index.encode()) <= 48
    assert len(segment.time_index.encode()) <= 48
    assert count == 4


def test_a_failed_write_is_undone(memory):
    """Does a write that runs out of space leave file and segment as they were?"""
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    put(segment, 0, 1000)
    before = memory.read(segment.path())
    memory.capacity = memory.used + 30
    with pytest.raises(OSError, match="No space"):
        put(segment, 1, 1001)

    assert memory.read(segment.path()) == before
    assert segment.size == len(before)

    memory.capacity = 1 << 30
    put(segment, 1, 1001)

    assert segment.find(1)[0] == len(before)


def test_a_failed_write_that_cannot_be_undone(memory):
    """Is that an error of its own kind?"""
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    memory.capacity = memory.used + 30
    memory.fail_next("truncate", errno.EIO)
    with pytest.raises(CorruptLog, match="cannot be undone"):
        put(segment, 0, 1001)


def test_a_short_write_goes_on(memory):
    """Is the rest of a batch written where a write took only part of it?"""
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    memory.tear = [3, 10]
    put(segment, 0, 1000)

    assert memory.read(segment.path()) == bytes(batch(1000, leader_epoch=0))


def test_view_and_mapping(disk, monkeypatch):
    """Does a range read the same copied and mapped, while the segment grows?"""
    monkeypatch.setattr(batch_file, "_MAP_MIN", 300)
    monkeypatch.setattr(batch_file, "_MAP_STEP", 400)
    segment = make(disk)
    views = []
    for i in range(30):
        put(segment, i, 1000 + i)
        position = segment.find(max(0, i - 3))[0]
        view = segment.view(position, segment.size - position)
        views.append((view, bytes(view), disk.files.read(segment.path())[position:]))

        assert segment.resident(position, segment.size - position)

    assert all(bytes(view) == then == expected for view, then, expected in views)
    assert {type(view.obj) for view, *_ in views} != {bytes}


def test_read_ahead_is_not_at_hand(memory, monkeypatch):
    """Does what follows a range that had to come from the disk count as on the disk, until a reader is beyond it?"""
    monkeypatch.setattr(batch_file, "_MAP_MIN", 300)
    monkeypatch.setattr(batch_file, "_READ_AHEAD", 200)
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    segment.configure(CONFIG)
    for number in range(30):
        put(segment, number, 1000 + number)
    segment.end_offset = 30
    cold = [(1000, 100)]
    monkeypatch.setattr(MemoryMapping, "resident", lambda _, position, size: (position, size) not in cold)

    asked = [0, 1000, 1100, 1200, 1800, 1300, 0]
    assert [segment.is_warm(position, 100) for position in asked] == [True, False, False, False, True, False, True]


def test_view_of_what_is_gone(disk):
    """Is a range that is no longer there an error rather than fewer bytes?"""
    segment = make(disk, count=3)
    size = segment.size
    segment.truncate(0)
    with pytest.raises(CorruptLog, match="ends before"):
        segment.view(0, size)


@pytest.mark.parametrize("looking", [True, False])
def test_truncating_a_mapped_file(disk, monkeypatch, looking):
    """Can a mapped segment be cut while somebody looks at it, without the view changing or the process dying?"""
    monkeypatch.setattr(batch_file, "_MAP_MIN", 1)
    monkeypatch.setattr(batch_file, "_MAP_STEP", 1)
    segment = make(disk, count=30)
    whole = bytes(segment.view(0, segment.size))
    view = segment.view(0, segment.size) if looking else None
    position = segment.find(10)[0]
    segment.truncate(position)

    assert view is None or bytes(view) == whole
    assert segment.size == position == segment.file.size()
    assert disk.files.read(segment.path()) == whole[:position]
    assert segment.max_timestamp() == (1009, 9)
    assert segment.find(10) is None

    put(segment, 10, 2000)
    segment.seal()

    assert again(segment).max_timestamp() == (2000, 10)


def test_found_while_it_is_renamed(memory):
    """Does a reader that has just found a segment read it, though a cleaner is about to give its files other names?"""
    written = Segment.create(memory, "/data", 0, now_ms=0)
    put(written, 0, 1000)
    segment = Segment(memory, "/data", 0, size=written.size)
    read = []
    reader = threading.Thread(target=lambda: read.append(segment.read(0, segment.size)))

    def look(operation, path):
        """Between the renaming of the log and that of its indexes."""
        if operation == "rename" and path.endswith(".index"):
            memory.before = None
            reader.start()
            # Long enough for a reader who would not wait to find no file of that name.
            reader.join(0.05)

    memory.before = look
    segment.rename(".deleted")
    reader.join()

    assert [written.read(0, written.size)] == read


def test_release_and_use_again(disk):
    """Does a released segment read as before, and keep views good?"""
    segment = make(disk, count=30)
    segment.seal()
    view = segment.view(0, 100)
    then = bytes(view)
    segment.release()

    assert bytes(view) == then
    assert segment.find(20)[1] == 20
    assert bytes(segment.view(0, 100)) == then


def test_names(disk):
    """Do all files follow a rename, and go together?"""
    segment = make(disk, count=3)
    segment.rename(".deleted")

    assert sorted(disk.files.listdir(disk.root)) == [
        f"00000000000000000000{kind}.deleted" for kind in (".index", ".log", ".timeindex")
    ]
    assert segment.find(2)[1] == 2

    segment.remove()

    assert disk.files.listdir(disk.root) == []


def test_nothing_is_left_of_a_segment_that_cannot_be_made(memory):
    """Are the files that could be made removed if the last cannot?"""
    memory.fail_next("create", errno.ENOSPC, path_contains=".log")
    with pytest.raises(OSError, match="No space"):
        Segment.create(memory, "/data", 0, now_ms=0)

    assert memory.listdir("/data") == []


def test_batches(disk, monkeypatch):
    """Are whole batches walked, also when one is greater than what is read at once?"""
    monkeypatch.setattr(batch_file, "_SCAN_BYTES", 150)
    segment = make(disk)
    for i in range(12):
        put(segment, i, 1000 + i, size=(i * 37) % 400)

    assert [header.base_offset for _, header, _ in segment.batches()] == list(range(12))
    assert all(read_header(view) == header for _, header, view in segment.batches())
    assert b"".join(view for _, _, view in segment.batches()) == disk.files.read(segment.path())
    assert [position for position, _ in segment.headers()] == [position for position, *_ in segment.outlines()]


@pytest.mark.parametrize("walk", ["outlines", "headers", "batches"])
@pytest.mark.parametrize("harm", ["magic", "length", "negative length", "cut"])
def test_walking_over_harm(memory, walk, harm):
    """Does every walk stop with a named error where no batch can be?"""
    segment = Segment.create(memory, "/data", 0, now_ms=0)
    for i in range(3):
        put(segment, i, 1000 + i)
    position = segment.find(1)[0]
    file = memory.open(segment.path())
    if harm == "cut":
        segment.size -= 20
    else:
        at, data = {"magic": (16, b"\x01"), "length": (8, b"\x7f"), "negative length": (8, b"\xff")}[harm]
        file.pwrite(data, position + at)
    with pytest.raises(CorruptLog, match=r"00000000000000000000\.log: no batch at"):
        list(getattr(segment, walk)())


def test_truncating_under_a_view_of_an_older_mapping(disk, monkeypatch):
    """Is a view good that was taken before the file grew and was mapped again, when the file is cut below it?"""
    monkeypatch.setattr(batch_file, "_MAP_MIN", 1)
    monkeypatch.setattr(batch_file, "_MAP_STEP", 1)
    segment = make(disk, count=10)
    view = segment.view(0, segment.size)
    then = bytes(view)
    put(segment, 10, 2000)
    segment.view(0, segment.size)
    segment.release()
    segment.view(0, segment.size)
    segment.truncate(0)

    assert bytes(view) == then
