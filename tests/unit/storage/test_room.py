"""Is room set aside for a segment that grows, on the disk and in its file, and given back?"""

import os
from pathlib import Path

import pytest

from headrace.model.log_config import LogConfig
from headrace.records.batch import patch_offsets
from headrace.storage.files import ZEROS_MAX, RealFile, RealFiles
from headrace.storage.room import set_aside
from headrace.storage.segment import Segment
from unit.storage.conftest import Disk
from unit.storage.samples import batch

KIBI = 1024
MEBI = 1024 * KIBI


@pytest.fixture
def grown(tmp_path):
    """A segment of 240 batches of a kibibyte, made with a wish for so much room."""
    with (tmp_path / "asked").open("w") as file:
        if not set_aside(file.fileno(), 0, KIBI):
            pytest.skip("this file system sets no room aside")

    def make(room_bytes):
        segment = Segment.create(RealFiles(), str(tmp_path), room_bytes, now_ms=0)
        segment.configure(LogConfig(segment_preallocate_bytes=room_bytes))
        for offset in range(240):
            segment.append(batch(1, size=KIBI), room_bytes + offset, 1)
        return segment

    return make


def on_disk(segment):
    """How much of the disk a segment's log has, whatever its length is."""
    os.sync()
    return Path(segment.path()).stat().st_blocks * 512


def test_room_comes_and_goes(grown):
    """Has a growing file more of the disk than it needs, until it is sealed, and never another length?"""
    segment = grown(100_000)

    assert segment.size == Path(segment.path()).stat().st_size
    assert on_disk(segment) >= segment.size + 50_000

    segment.seal()

    assert segment.size == Path(segment.path()).stat().st_size
    assert on_disk(segment) < segment.size + 10_000


def test_room_leaves_no_gaps(tmp_path, monkeypatch):
    """Does new room begin where the old one ends or before, and end at a round place, so that no page lies in two?"""
    asked = []
    monkeypatch.setattr(RealFile, "reserve", lambda _, position, size: asked.append((position, position + size)))
    segment = Segment.create(RealFiles(), str(tmp_path), 0, now_ms=0)
    segment.configure(LogConfig(segment_preallocate_bytes=4 * MEBI))
    for offset in range(700):
        segment.append(batch(1, size=40_000), offset, 1)

    ends = [end for _, end in asked]
    assert len(asked) > 5
    assert all(begin <= end for (begin, _), end in zip(asked[1:], ends, strict=False))
    assert all(end > begin + 40_000 for begin, end in asked)
    assert {end % (64 * KIBI) for end in ends} == {0}
    assert {end % (2 * MEBI) for end in ends if end > 6 * MEBI} == {0}
    assert max(ends) - segment.size <= 4 * MEBI


def test_no_room(grown):
    """Is none set aside where the topic wants none?"""
    segment = grown(0)

    assert on_disk(segment) < segment.size + 10_000


def growing(disk, batches, *, base_offset=0, size=20_000, **settings):
    """A segment with so many batches."""
    segment = Segment.create(disk.files, disk.root, base_offset, now_ms=0)
    segment.configure(LogConfig(**settings))
    for offset in range(batches):
        put(segment, base_offset + offset, size=size)
    return segment


def put(segment, offset, *, size=20):
    made = batch(1, size=size)
    patch_offsets(made, 0, base_offset=offset, leader_epoch=0)
    segment.append(made, offset, 1)


def zeros_behind(segment):
    """How far the file goes beyond its batches, all of that zeros."""
    behind = segment.file.pread(2 * MEBI, segment.size)
    assert not any(behind)
    return len(behind)


def test_zeros_ahead(disk):
    """Does a file that has grown large end in zeros, at a round place, which are written over?"""
    small, large = growing(disk, 12), growing(disk, 20, base_offset=100)

    assert zeros_behind(small) == 0
    assert large.size + zeros_behind(large) == 2 * ZEROS_MAX
    assert len(list(large.headers())) == 20
    assert zeros_behind(growing(disk, 20, base_offset=200, size=ZEROS_MAX)) == 0

    large.seal()

    assert zeros_behind(large) == 0
    assert len(list(large.headers())) == 20


@pytest.mark.parametrize(
    "settings", [{"segment_preallocate_bytes": 0}, {"segment_bytes": 20 * len(batch(1, size=20_000))}]
)
def test_no_zeros(disk, settings):
    """Are there none where the topic wants no room, and none beyond where the segment must end?"""
    assert zeros_behind(growing(disk, 20, **settings)) == 0


def test_a_wish_for_less(disk):
    """Are there no more zeros than a topic wants room?"""
    assert 0 < zeros_behind(growing(disk, 20, segment_preallocate_bytes=30_000)) <= 30_000


def test_few_zeros_behind_small_batches(disk):
    """Are there no more zeros than for some batches like the last one, so that who flushes each waits for few?"""
    segment = growing(disk, 20)
    segment.seal()
    put(segment, 20)
    few = zeros_behind(segment)
    segment.seal()
    put(segment, 21, size=2_000)

    assert 0 < few < 4096
    assert 0 < zeros_behind(segment) < 64 * KIBI


def test_a_segment_comes_to_rest(disk):
    """Does a file end with its batches when nothing was written between two looks, until it grows again?"""
    segment = growing(disk, 20)

    assert not segment.rest()

    put(segment, 20)

    assert not segment.rest()
    assert zeros_behind(segment) > 0
    assert segment.rest()
    assert zeros_behind(segment) == 0
    assert not segment.rest()

    put(segment, 21)

    assert zeros_behind(segment) > 0
    assert len(list(segment.headers())) == 22


def test_truncating_a_segment_with_zeros(disk):
    """Does a segment that is cut and grows again have its batches, and zeros behind them?"""
    segment = growing(disk, 20)
    segment.truncate(14 * (segment.size // 20))

    assert zeros_behind(segment) == 0

    put(segment, 14, size=20_000)

    assert zeros_behind(segment) > 0
    assert len(list(segment.headers())) == 15


def test_a_full_disk_takes_batches_without_zeros(memory):
    """Where the disk has room for a batch and not for zeros, is the batch written, and the next one refused?"""
    segment = growing(Disk(memory, "/data"), 14)
    segment.seal()
    size = segment.size
    memory.capacity = memory.used + len(batch(1)) + 10
    put(segment, 14)

    assert segment.size == size + len(batch(1))
    assert zeros_behind(segment) == 10

    with pytest.raises(OSError, match="No space"):
        put(segment, 15)

    assert segment.size == size + len(batch(1))
    assert zeros_behind(segment) == 0


def test_where_it_cannot_be():
    """Is a descriptor that takes no room told by an answer, not by an error?"""
    with Path(os.devnull).open("rb") as nowhere:
        assert not set_aside(nowhere.fileno(), 0, KIBI)
