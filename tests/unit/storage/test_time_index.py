"""Does the time index lead to the right offset, and is a bad file recognised?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage.time_index import TimeIndex


def sample() -> TimeIndex:
    index = TimeIndex(100)
    for timestamp, offset in ((5000, 103), (5000, 110), (6000, 120), (5500, 130), (7000, 140)):
        index.append(timestamp, offset)
    return index


def test_only_news_is_kept():
    """Are entries that raise no timestamp left out, and is the file Kafka's?"""
    assert sample().encode() == bytes.fromhex(
        "0000000000001388 00000003 0000000000001770 00000014 0000000000001b58 00000028"
    )
    assert sample().last() == (7000, 140)
    assert TimeIndex(0).last() is None


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [(0, (-1, 100)), (4999, (-1, 100)), (5000, (5000, 103)), (5999, (5000, 103)), (9000, (7000, 140))],
)
def test_lookup(timestamp, entry):
    """Is the entry found one before whose offset nothing is as late?"""
    assert sample().lookup(timestamp) == entry


def test_reading_the_file_back():
    """Does a decoded index answer like the one that was written?"""
    index = TimeIndex.decode(sample().encode(), base_offset=100)

    assert index is not None
    assert len(index) == 3
    assert index.lookup(6500) == (6000, 120)


@pytest.mark.parametrize(
    "data",
    [
        bytes(11),
        bytes(24),
        bytes.fromhex("0000000000000005 ffffffff"),
        bytes.fromhex("0000000000000005 00000003 0000000000000006 00000002"),
        bytes.fromhex("0000000000000005 00000003 0000000000000004 00000004"),
    ],
    ids=["odd length", "zeros", "negative offset", "offsets fall", "timestamps fall"],
)
def test_bad_files(data):
    """Is a file that no log can have written refused?"""
    assert TimeIndex.decode(data, base_offset=0) is None


@given(st.binary(max_size=200))
def test_any_bytes(data):
    """Does any file either decode to an index that encodes to the same bytes, or to None?"""
    index = TimeIndex.decode(data, base_offset=10)

    assert index is None or index.encode() == data
