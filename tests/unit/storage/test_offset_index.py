"""Does the offset index lead to the right batch, and is a bad file recognised?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage.offset_index import OffsetIndex


def sample() -> OffsetIndex:
    index = OffsetIndex(1000)
    for offset, position in ((1004, 500), (1010, 1100), (1011, 1800)):
        index.append(offset, position)
    return index


def test_the_file_is_kafkas():
    """Is an entry the relative offset and the position, four big-endian bytes each?"""
    assert sample().encode() == bytes.fromhex("00000004000001f4 0000000a0000044c 0000000b00000708")
    assert sample().encode(2) == bytes.fromhex("0000000b00000708")


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(1000, (1000, 0)), (1003, (1000, 0)), (1004, (1004, 500)), (1009, (1004, 500)), (5000, (1011, 1800))],
)
def test_lookup(offset, expected):
    """Is the entry found the last one that is not above the offset?"""
    assert sample().lookup(offset) == expected


@pytest.mark.parametrize(
    ("position", "expected"), [(499, (1000, 0)), (500, (1004, 500)), (1799, (1010, 1100)), (9999, (1011, 1800))]
)
def test_floor_position(position, expected):
    """Is the entry found the last one that does not begin above the position?"""
    assert sample().floor_position(position) == expected


def test_reading_the_file_back():
    """Does a decoded index answer like the one that was written?"""
    index = OffsetIndex.decode(sample().encode(), base_offset=1000, log_bytes=2000)

    assert index is not None
    assert len(index) == 3
    assert index.lookup(1010) == (1010, 1100)
    assert index.entry(-1) == (1011, 1800)


def test_an_empty_file_is_an_empty_index():
    """Is no entry a valid index?"""
    index = OffsetIndex.decode(b"", base_offset=0, log_bytes=0)

    assert index is not None
    assert index.lookup(7) == (0, 0)


@pytest.mark.parametrize(
    "data",
    [
        bytes(7),
        bytes(16),
        bytes.fromhex("ffffffff00000001"),
        bytes.fromhex("00000001ffffffff"),
        bytes.fromhex("0000000100002000"),
        bytes.fromhex("0000000500000010 0000000400000020"),
        bytes.fromhex("0000000400000020 0000000500000010"),
    ],
    ids=[
        "odd length",
        "zeros",
        "negative offset",
        "negative position",
        "beyond the log",
        "offsets fall",
        "positions fall",
    ],
)
def test_bad_files(data):
    """Is a file that no log can have written refused?"""
    assert OffsetIndex.decode(data, base_offset=0, log_bytes=4096) is None


@given(st.binary(max_size=200))
def test_any_bytes(data):
    """Does any file either decode to an index that encodes to the same bytes, or to None?"""
    index = OffsetIndex.decode(data, base_offset=10, log_bytes=1000)

    assert index is None or index.encode() == data
