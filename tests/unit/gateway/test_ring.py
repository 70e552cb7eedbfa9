"""Numbers over time in bounded memory."""

import pytest

from headrace.gateway.ring import Ring, rates


def test_keeps_the_newest():
    """Are only so many moments kept, the oldest forgotten first?"""
    ring = Ring(3, 10)
    for at in range(5):
        ring.add(float(at), {"a": at * 10.0})

    assert ring.series("a") == [(2.0, 20.0), (3.0, 30.0), (4.0, 40.0)]
    assert (ring.latest, ring.last("a")) == (4.0, 40.0)


def test_what_comes_and_goes():
    """Does a thing begin where it came, and is it forgotten when it is gone?"""
    ring = Ring(4, 10)
    ring.add(0.0, {"a": 1.0})
    ring.add(1.0, {"a": 2.0, "b": 5.0})

    assert ring.series("b") == [(1.0, 5.0)]

    ring.add(2.0, {"b": 6.0})
    assert ring.series("a") == []
    assert ring.last("a") is None


def test_no_more_than_so_many():
    """Is a thing beyond the limit left out, without harm to the others?"""
    ring = Ring(2, 1)
    ring.add(0.0, {"a": 1.0, "b": 2.0})

    assert (ring.last("a"), ring.last("b")) == (1.0, None)


@pytest.mark.parametrize(
    ("number", "when"), [(0, 0.0), (5, 0.5), (10, 11.0), (15, 11.5), (-1, None), (20, None), (99, None)]
)
def test_when_reached(number, when):
    """Is the moment a growing number passed another found between two looks, and not guessed outside of them?"""
    ring = Ring(10, 1)
    for at, end in ((0.0, 0.0), (1.0, 10.0), (11.0, 10.0), (12.0, 20.0)):
        ring.add(at, {"a": end})

    assert ring.when_reached("a", number) == when


def test_rates():
    """Is growth told per second, and a thing that began anew not as a fall?"""
    assert rates([(0.0, 0.0), (2.0, 10.0), (4.0, 10.0), (5.0, 3.0)]) == [(2.0, 5.0), (4.0, 0.0), (5.0, 3.0)]
