import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.fault import BadOption
from headrace.client.records import TopicPartition
from headrace.spark.offsets import (
    RECORDS_PER_TASK,
    Range,
    anew,
    begins,
    capped,
    data_lost,
    from_json,
    is_worth_waiting,
    kept_within,
    limited,
    losses,
    plan,
    questions,
    ranges,
    timed,
    to_json,
)
from headrace.spark.positions import EARLIEST, LATEST, parse_offsets, parse_timestamp

A, B, C = TopicPartition("a", 0), TopicPartition("a", 10), TopicPartition("b", 2)


def test_offsets_in_a_checkpoint():
    """Are offsets written as the connector writes them, always in one order, and read back?"""
    offsets = {C: 3, B: 2, A: 1}

    assert '{"a": {"0": 1, "10": 2}, "b": {"2": 3}}' == json.dumps(to_json(offsets))
    assert offsets == from_json(to_json(offsets))


def test_questions():
    """Is only asked what is not known?"""
    named = parse_offsets("startingOffsets", '{"a":{"0":5,"10":-1}}')

    assert {A: EARLIEST, B: EARLIEST} == questions(parse_offsets("o", "earliest"), [A, B])
    assert {A: 70} == questions(parse_timestamp("o", "70"), [A])
    assert {B: LATEST} == questions(named, [A, B])
    assert {} == questions(parse_offsets("o", "group"), [A])
    with pytest.raises(BadOption, match=r"startingOffsets says nothing about b-2. Use -2"):
        questions(named, [A, B, C])
    with pytest.raises(BadOption, match="startingOffsets names a-10, which is not read"):
        questions(named, [A])


def test_times_without_records():
    """Is a time after the last record an error, or the end?"""
    position = parse_timestamp("startingTimestamp", "70")

    assert {A: 4, B: 9} == timed(position, {A: 4, B: -1}, {B: 9}, or_latest=True)
    with pytest.raises(BadOption, match="a-10 has no record at or after startingTimestamp 70"):
        timed(position, {A: 4, B: -1}, {}, or_latest=False)


def test_named_offsets_outside():
    """Are offsets outside of what is there moved inside, and told?"""
    kept, told = kept_within({A: 5, B: 1, C: 99}, {A: 0, B: 3, C: 0}, {A: 9, B: 8, C: 7}, "startingOffsets")

    assert {A: 5, B: 3, C: 7} == kept
    assert [
        "startingOffsets is 1 for a-10, which has 3 to 8",
        "startingOffsets is 99 for b-2, which has 0 to 7",
    ] == told


def test_losses():
    """Is everything told that is gone: partitions, records, and first records of new partitions?"""
    start, latest, earliest = {A: 5, B: 5}, {B: 3, C: 9}, {B: 0, C: 4}

    assert [B, C] == anew(start, latest)
    assert [
        "a-0 is gone; it was read up to 5",
        "a-10 ends at 3, but was read up to 5",
        "b-2 is new, but begins at 4",
    ] == losses(start, latest, earliest)
    assert {B: 0, C: 4} == begins(start, latest, earliest)
    assert [] == losses({A: 5}, {A: 5, C: 9}, {C: 0})
    assert "Data is lost: one (and 1 more). To go on" in str(data_lost(["one", "two"]))


def test_limit_is_shared():
    """Does each partition get its share of the limit, and a small one not nothing?"""
    begin, latest = {A: 0, B: 100, C: 7}, {A: 900, B: 1000, C: 8}

    assert {A: 4 + 0, B: 104, C: 8} == limited(begin, latest, 10)
    assert latest == limited(begin, latest, None) == limited(begin, latest, 1801)


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20), st.integers(1, 10**6)
)
def test_limit_always_moves(sizes, limit):
    """Whatever waits: does a limited batch move forward, stay within bounds, and hardly pass the limit?"""
    begin = {TopicPartition("t", number): start for number, (start, _) in enumerate(sizes)}
    latest = {TopicPartition("t", number): start + size for number, (start, size) in enumerate(sizes)}
    end = limited(begin, latest, limit)
    taken = sum(end[place] - begin[place] for place in end)

    assert all(begin[place] <= end[place] <= latest[place] for place in latest)
    assert (taken > 0) == any(size for _, size in sizes)
    assert taken <= max(limit, 0) + len(sizes)


def test_waiting_for_more():
    """Does a batch wait for enough records, but not for ever?"""

    def waits(records_min, waited_ms):
        return is_worth_waiting({A: 0}, {A: 9}, records_min=records_min, waited_ms=waited_ms, wait_max_ms=100)

    assert [False, True, False, False] == [waits(None, 0), waits(10, 99), waits(10, 100), waits(9, 0)]


def test_available_now():
    """Is what appeared after the trigger left for the next run, and nothing read backward?"""
    assert {A: 5, B: 9} == capped({A: 8, B: 9, C: 4}, {A: 5, B: 7}, {A: 1, B: 9})


def test_ranges():
    """Is there a range for each partition that has something, in order?"""
    assert [Range(A, 1, 5), Range(C, 0, 1)] == ranges({C: 0, B: 3, A: 1}, {C: 1, B: 3, A: 5})


def test_few_records_are_one_task():
    """Do small ranges share a task, and large ones have each their own?"""
    small = [Range(TopicPartition("t", number), 0, 100) for number in range(10)]
    large = [Range(TopicPartition("t", number), 0, 10 * RECORDS_PER_TASK) for number in range(10)]

    assert [tuple(small)] == plan(small)
    assert [(one,) for one in large] == plan(large)
    assert 2 == len(plan([one._replace(stop=RECORDS_PER_TASK // 5) for one in small]))
    assert 3 == len(plan(large, tasks_max=3))
    assert [] == plan([])


def test_more_tasks_than_partitions():
    """Are ranges cut where more tasks are asked for?"""
    one = Range(A, 10, 110)

    assert [(Range(A, 10, 60),), (Range(A, 60, 110),)] == plan([one], partitions_min=2)
    assert [(Range(A, 10, 43),), (Range(A, 43, 76),), (Range(A, 76, 110),)] == plan([one], partition_records_max=34)
    assert 2 == len(plan([Range(A, 0, 1), Range(B, 0, 1)], partitions_min=50))


_RANGES = st.lists(
    st.builds(lambda number, start, size: Range(TopicPartition("t", number), start, start + size),
              st.integers(0, 99), st.integers(0, 10**9), st.integers(1, 10**6)),
    max_size=12, unique_by=lambda one: one.place,
)  # fmt: skip


@given(_RANGES, st.none() | st.integers(1, 20), st.none() | st.integers(1, 40), st.none() | st.integers(10**4, 10**6))
def test_plans_cover_everything_once(wanted, tasks_max, partitions_min, records_max):
    """Whatever is asked for: is every offset in one task, within the bounds, and the plan the same each time?"""
    options = {"tasks_max": tasks_max, "partitions_min": partitions_min, "partition_records_max": records_max}
    tasks = plan(wanted, **options)
    pieces = sorted(piece for task in tasks for piece in task)

    assert tasks == plan(wanted, **options)
    assert all(tasks)
    assert tasks_max is None or len(tasks) <= tasks_max
    assert records_max is None or all(piece.size <= records_max for piece in pieces)
    if partitions_min is not None and tasks_max is None:
        assert len(tasks) >= min(partitions_min, sum(one.size for one in wanted))
    for one in wanted:
        mine = [piece for piece in pieces if piece.place == one.place]
        assert (one.start, one.stop) == (mine[0].start, mine[-1].stop)
        assert all(left.stop == right.start for left, right in pairwise(mine))
