"""Plans that drain a broker or spread everything evenly: nobody has much more than another, and little is moved."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.balance_plan import NowhereToGo, counts, plan_drain, plan_rebalance

FOUR = dict.fromkeys((1, 2, 3, 4))


def clusters(*, least=2):
    """Brokers with racks or without, and partitions with replicas anywhere."""

    @st.composite
    def draw_cluster(draw):
        ids = list(range(1, draw(st.integers(least, 6)) + 1))
        has_racks = draw(st.booleans())
        racks = {one: f"r{one % 2}" if has_racks else None for one in ids}
        partitions = draw(st.lists(st.tuples(st.sampled_from("abc"), st.permutations(ids), st.integers(1, 3))))
        current = {(topic, index): list(order[:size]) for index, (topic, order, size) in enumerate(partitions)}
        return current, racks

    return draw_cluster()


def test_drain_spreads_over_the_others():
    """Do the replicas of a broker go to those who have the fewest, each in its place?"""
    current = {("t", 0): [1, 2], ("t", 1): [2, 1], ("t", 2): [3, 4], ("t", 3): [3, 4]}

    assert plan_drain(current, 2, FOUR) == {("t", 0): [1, 3], ("t", 1): [4, 1]}


def test_drain_prefers_a_new_rack():
    """Does a replica go to a rack that has none of the partition, though others have fewer?"""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    current = {("t", 0): [1, 2], ("t", 1): [4]}

    assert plan_drain(current, 2, racks) == {("t", 0): [1, 4]}


def test_drain_that_cannot_be():
    """Are the partitions named that have nowhere to go?"""
    with pytest.raises(NowhereToGo) as caught:
        plan_drain({("t", 0): [1, 2, 3], ("t", 1): [1, 2]}, 2, dict.fromkeys((1, 2, 3)))

    assert caught.value.places == [("t", 0)]


def test_new_broker_gets_its_share():
    """Does a broker that came get a fourth of replicas and leaders, by no more moves than that takes?"""
    current = {("t", index): [index % 3 + 1, (index + 1) % 3 + 1] for index in range(12)}
    planned = plan_rebalance(current, FOUR)
    after = {**current, **planned}

    assert counts(after, FOUR) == dict.fromkeys(FOUR, 6)
    assert Counter(replicas[0] for replicas in after.values()) == dict.fromkeys(FOUR, 3)
    assert sum(len({*replicas} - {*current[place]}) for place, replicas in planned.items()) == 6


def test_leaders_along_a_chain():
    """Where no single partition helps, is leadership handed on from broker to broker?"""
    current = {("t", 0): [1, 2], ("t", 1): [1, 2], ("t", 2): [2, 3]}
    planned = plan_rebalance(current, dict.fromkeys((1, 2, 3)))
    after = {**current, **planned}

    assert sorted(replicas[0] for replicas in after.values()) == [1, 2, 3]


@given(clusters())
def test_balanced_is_left_alone(cluster):
    """Is what a plan makes so even that the next plan is empty, with all replicas kept and no rack given up?"""
    current, racks = cluster
    after = {**current, **plan_rebalance(current, racks)}

    assert plan_rebalance(after, racks) == {}
    for place, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(current[place])
        assert len({racks[one] for one in replicas}) >= len({racks[one] for one in current[place]})
    if None in racks.values():
        loads = counts(after, racks).values()
        assert max(loads) - min(loads) <= 1


@given(clusters(least=4))
def test_drained_is_empty(cluster):
    """Has a drained broker nothing left, and is nothing else moved?"""
    current, racks = cluster
    planned = plan_drain(current, 1, racks)

    assert {*planned} == {place for place, replicas in current.items() if 1 in replicas}
    for place, replicas in planned.items():
        assert 1 not in replicas
        assert [one for one in replicas if one in current[place]] == [one for one in current[place] if one != 1]
        assert len(set(replicas)) == len(current[place])
