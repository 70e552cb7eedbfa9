"""How far everything is safe."""

from headrace.cores.replication.high_watermark import safe_offset
from headrace.cores.replication.progress import FollowerProgress


def at(*offsets):
    """Followers at these offsets."""
    made = []
    for offset in offsets:
        follower = FollowerProgress(len(made) + 2, 0, in_sync=True)
        follower.offset = offset
        made.append(follower)
    return made


def test_the_lowest_counts():
    """Is it the lowest offset of the leader and all that count?"""
    assert safe_offset(9, at(7, 8)) == 7
    assert safe_offset(5, at(7, 8)) == 5
    assert safe_offset(5, ()) == 5


def test_one_not_heard_yet():
    """Does a follower that has not fetched yet hold everything back?"""
    assert safe_offset(9, at(8, -1)) == -1
