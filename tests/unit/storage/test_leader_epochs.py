"""Do leader epochs answer as KIP-101 and KIP-320 ask?"""

import pytest

from headrace.storage.leader_epochs import LeaderEpochs


def sample() -> LeaderEpochs:
    return LeaderEpochs([(1, 10), (3, 20), (5, 30)])


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (3, 30)),
        (4, (3, 30)),
        (5, (5, 44)),
        (6, (-1, -1)),
    ],
)
def test_end_offset(epoch, expected):
    """Is an epoch's end the start of the next, the log's end for the last, and unknown beyond?"""
    assert sample().end_offset(epoch, 44) == expected


def test_nothing_known():
    """Does an empty history know no epoch?"""
    assert LeaderEpochs([]).end_offset(0, 5) == (-1, -1)
    assert LeaderEpochs([]).latest == -1
    assert LeaderEpochs([]).epoch_at(0) == -1


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ((5, 35), [(1, 10), (3, 20), (5, 30)]),
        ((6, 40), [(1, 10), (3, 20), (5, 30), (6, 40)]),
        ((6, 30), [(1, 10), (3, 20), (6, 30)]),
        ((6, 15), [(1, 10), (6, 15)]),
        ((4, 40), [(1, 10), (3, 20), (4, 40)]),
        ((-1, 40), [(1, 10), (3, 20), (5, 30)]),
    ],
    ids=["known", "next", "the last wrote nothing", "rewritten", "older", "none"],
)
def test_assigning(assigned, expected):
    """Do entries that a new one contradicts go, and epochs that wrote nothing?"""
    epochs = sample()
    epochs.assign(*assigned)

    assert epochs.entries() == expected
    assert epochs.latest == expected[-1][0]


def test_truncating_the_end():
    """Do epochs go that begin at the end or behind it?"""
    epochs = sample()
    epochs.truncate_from_end(30)

    assert epochs.entries() == [(1, 10), (3, 20)]
    assert epochs.latest == 3


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (5, [(1, 10), (3, 20), (5, 30)]),
        (10, [(1, 10), (3, 20), (5, 30)]),
        (15, [(1, 15), (3, 20), (5, 30)]),
        (20, [(3, 20), (5, 30)]),
        (99, [(5, 99)]),
    ],
)
def test_truncating_the_start(offset, expected):
    """Does the epoch of the new start begin there, without the ones before?"""
    epochs = sample()
    epochs.truncate_from_start(offset)

    assert epochs.entries() == expected


def test_epoch_at():
    """Is an offset's epoch the one that wrote it?"""
    assert [sample().epoch_at(offset) for offset in (9, 10, 19, 20, 100)] == [-1, 1, 1, 3, 5]


def test_mark():
    """Does the mark change with every change below the end, and with nothing else?"""
    epochs = sample()
    mark = epochs.mark(30)

    assert mark[1] == 2
    assert epochs.mark(25) == mark
    assert epochs.mark(31) != mark

    epochs.assign(5, 33)

    assert epochs.mark(30) == mark

    epochs.clear()

    assert epochs.mark(30) != mark
