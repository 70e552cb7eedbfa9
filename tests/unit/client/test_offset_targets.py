"""Where offsets shall stand."""

import asyncio

import pytest

from headrace.client.offset_targets import (
    EARLIEST,
    LATEST,
    NothingCommitted,
    NothingSoLate,
    OffsetTargets,
    OutOfRange,
)

A, B, C = ("t", 0), ("t", 1), ("u", 0)
LOGS = {A: (5, 20), B: (0, 10), C: (0, 0)}
TIMES = {A: 7, B: -1, C: -1}


async def log_offsets(places, when):
    """A cluster with three partitions."""
    sides = {EARLIEST: 0, LATEST: 1}
    return {place: LOGS[place][sides[when]] if when in sides else TIMES[place] for place in places}


@pytest.fixture
def noticed():
    """What was told."""
    return []


@pytest.fixture
def targets(noticed):
    """Plans for that cluster."""
    return OffsetTargets(log_offsets, noticed.append)


def test_ends(targets, noticed):
    """Do beginning and end come in the order in which partitions were given?"""
    assert list(asyncio.run(targets.at([C, A], EARLIEST)).items()) == [(C, 0), (A, 5)]
    assert asyncio.run(targets.at([B], LATEST)) == {B: 10}
    assert asyncio.run(targets.at([], LATEST)) == {}
    assert noticed == []


def test_range(targets, noticed):
    """Is an offset that the log does not have moved to its nearest end, and told?"""
    assert asyncio.run(targets.to_offset([A, B, C], 3)) == {A: 5, B: 3, C: 0}
    assert noticed == [OutOfRange(A, 3, 5), OutOfRange(C, 3, 0)]


def test_shift(targets, noticed):
    """Do offsets shift from where they are, and not from nowhere?"""
    assert asyncio.run(targets.shift_by([A, B], {A: 10, B: 9}, 2)) == {A: 12, B: 10}
    assert noticed == [OutOfRange(B, 11, 10)]
    with pytest.raises(NothingCommitted, match="t-1"):
        asyncio.run(targets.shift_by([A, B], {A: 10}, 2))


def test_time(targets, noticed):
    """Is the end taken where no record is as late?"""
    assert asyncio.run(targets.at_time([A, B], 1234)) == {A: 7, B: 10}
    assert noticed == [NothingSoLate(B)]


def test_current(targets):
    """Does what is committed stay, and what is not go to the end?"""
    assert asyncio.run(targets.to_current([A, B], {B: 4})) == {A: 20, B: 4}
