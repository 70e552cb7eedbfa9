"""Runs of records under way in a share partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.share_partition_runs import NOBODY, RecordState, Run, Runs

FREE, OUT, DONE = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED


def runs_of(*states, start=0):
    """One run for each state, of two records each."""
    runs = Runs()
    for number, state in enumerate(states):
        runs.append(Run(start + 2 * number, start + 2 * number + 1, state, 1, "a" if state is OUT else NOBODY))
    return runs


def shown(runs):
    """First and last offset and state of each run."""
    return [(run.first, run.last, run.state) for run in runs]


@given(
    states=st.lists(st.sampled_from([FREE, OUT, DONE]), min_size=1, max_size=6),
    first=st.integers(-2, 14),
    more=st.integers(-1, 8),
)
def test_exactly_what_was_asked_for(states, first, more):
    """Do the runs between two offsets cover exactly the records that are there, and the others stay as they were?"""
    runs = runs_of(*states)
    before = {offset: run.state for run in runs for offset in range(run.first, run.last + 1)}

    found = runs.between(first, first + more)
    whole = runs.overlapping(first, first + more)

    covered = [offset for run in found for offset in range(run.first, run.last + 1)]
    assert covered == [offset for offset in before if first <= offset <= first + more]
    assert whole == found
    assert {offset: run.state for run in runs for offset in range(run.first, run.last + 1)} == before
    runs.join()
    assert {offset: run.state for run in runs for offset in range(run.first, run.last + 1)} == before


@given(
    count=st.integers(1, 20),
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=20),
)
def test_ranges_meet_their_records(count, sizes):
    """Does each range meet exactly the records of it that are there once the runs are cut, however many ranges?"""
    runs = runs_of(*[OUT, FREE] * count)
    ranges, end = [], 0
    for number, (gap, size) in enumerate(sizes):
        ranges.append((end + gap, end + gap + size - 1, number))
        end += gap + size

    runs.cut(ranges)

    met = {offset: said for said, run in runs.meeting(ranges) for offset in range(run.first, run.last + 1)}
    assert met == {
        offset: number for first, last, number in ranges for offset in range(first, min(last, 4 * count - 1) + 1)
    }
    assert next((run.first, run.state) for run in runs) == (0, OUT)
    assert sum(run.count for run in runs) == 4 * count


def test_split_keeps_the_fate():
    """Are both parts of a split run in the same state, with the same holder, deadline and write?"""
    run = Run(0, 9, OUT, 3, "a", 500)
    run.write, run.next_state = 4, DONE

    behind = run.split(6)

    assert ((run.first, run.last), (behind.first, behind.last)) == ((0, 5), (6, 9))
    assert run.fate == behind.fate == (OUT, 3, "a", 500, 4, DONE)
    assert (run.count, behind.count) == (6, 4)


def test_neighbours_with_one_fate_are_joined():
    """Is a run made of neighbours that are alike, and only of those?"""
    runs = runs_of(FREE, FREE, OUT, FREE)

    runs.join()

    assert shown(runs) == [(0, 3, FREE), (4, 5, OUT), (6, 7, FREE)]


def test_settled_run_is_nobodys():
    """Does a run that is settled lose its holder, deadline and write?"""
    run = Run(0, 1, OUT, 2, "a", 500)
    run.write = 1
    assert not run.is_free

    run.settle(FREE)

    assert (run.fate, run.is_free) == ((FREE, 2, NOBODY, 0, None, FREE), True)


def test_done_runs_are_dropped_from_the_start():
    """Are only the done runs at the start dropped?"""
    runs = runs_of(DONE, RecordState.ARCHIVED, OUT, DONE)

    assert runs.drop_done() == 3
    assert shown(runs) == [(4, 5, OUT), (6, 7, DONE)]
    assert runs.drop_done() is None


@pytest.mark.parametrize(("offset", "left"), [(-1, 4), (0, 4), (1, 3), (3, 1), (4, 0), (9, 0)])
def test_dropping_what_lies_before(offset, left):
    """Are the records before an offset dropped, also from inside a run?"""
    runs = runs_of(FREE, OUT)

    runs.drop_before(offset)

    assert sum(run.count for run in runs) == left


def test_runs_have_no_gaps():
    """Is a run that does not continue the last one our own mistake?"""
    runs = runs_of(FREE)

    with pytest.raises(AssertionError):
        runs.append(Run(5, 6, FREE, 0))
    runs.clear()
    assert (len(runs), runs.between(0, 9)) == (0, [])
