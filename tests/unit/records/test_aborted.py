"""Batches of aborted transactions."""

from headrace.records.aborted import AbortedProducers


def test_a_producer_is_aborted_between_its_first_batch_and_its_marker():
    """Does a producer count as aborted from where its transaction began to where it ended, and again in the next?"""
    undone = AbortedProducers([(7, 20), (5, 3), (7, 1)])

    assert 7 not in undone
    undone.reach(3)
    assert [True, True] == [7 in undone, 5 in undone]
    undone.end(7)
    assert [False, True] == [7 in undone, 5 in undone]
    undone.reach(19)
    assert 7 not in undone
    undone.reach(20)
    assert 7 in undone


def test_nothing_left():
    """Is there an end, after which nothing needs to be looked at?"""
    undone = AbortedProducers([(7, 1)])
    assert undone
    undone.reach(1)
    assert undone
    undone.end(7)

    assert not undone
    assert not AbortedProducers([])
