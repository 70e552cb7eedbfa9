"""Is room on the disk set aside for a segment that grows, and given back?"""

import os
from pathlib import Path

import pytest

from headrace.model.log_config import LogConfig
from headrace.storage.files import RealFile, RealFiles
from headrace.storage.room import set_aside
from headrace.storage.segment import Segment
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


def test_where_it_cannot_be():
    """Is a descriptor that takes no room told by an answer, not by an error?"""
    with Path(os.devnull).open("rb") as nowhere:
        assert not set_aside(nowhere.fileno(), 0, KIBI)
