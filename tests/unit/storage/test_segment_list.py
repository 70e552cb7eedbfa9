"""Is the right segment found for an offset?"""

from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList


def test_finding(memory):
    """Is it the last one that does not begin above the offset, or else the first?"""
    a, b, c = (Segment.create(memory, "/data", base, now_ms=0) for base in (10, 20, 30))
    segments = SegmentList([a, b, c])

    assert [segments.floor(offset) for offset in (5, 10, 19, 20, 99)] == [a, a, a, b, c]
    assert segments.from_offset(25) == (b, c)
    assert segments.after(b) is c
    assert segments.after(c) is None
