"""The simple assignor of share groups."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.groups.share_assignor import assign

TOPICS = [UUID(int=number) for number in range(1, 4)]


@given(members=st.integers(1, 12), counts=st.lists(st.integers(0, 6), min_size=3, max_size=3), old=st.data())
def test_load_is_even(members, counts, old):
    """Is every partition read, does every member read, and is the load even, whatever members had before?"""
    ids = [f"m{number}" for number in range(members)]
    partitions = {topic: range(count) for topic, count in zip(TOPICS, counts, strict=True)}
    everything = [(topic, index) for topic in TOPICS for index in partitions[topic]]
    current = {member: old.draw(st.frozensets(st.sampled_from(everything))) for member in ids} if everything else {}

    result = assign(dict.fromkeys(ids, frozenset(TOPICS)), current, partitions)

    assert set(result) == set(ids)
    assert set().union(*result.values()) == set(everything)
    sizes = [len(assigned) for assigned in result.values()]
    if everything:
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 2


@given(old=st.integers(1, 6), new=st.integers(1, 6), count=st.integers(1, 12))
def test_assignment_is_settled(old, new, count):
    """Does nothing move when nothing changed?"""
    partitions = {TOPICS[0]: range(count)}
    first = assign(dict.fromkeys([f"m{n}" for n in range(old)], frozenset(TOPICS)), {}, partitions)
    ids = dict.fromkeys([f"m{n}" for n in range(new)], frozenset(TOPICS))
    second = assign(ids, first, partitions)

    assert assign(ids, second, partitions) == second


def test_members_with_different_wishes():
    """Does nobody get what it did not subscribe to, and is each topic still read as a whole?"""
    subscriptions = {
        "a": frozenset({TOPICS[0]}),
        "b": frozenset({TOPICS[0], TOPICS[1]}),
        "c": frozenset({TOPICS[2]}),
        "d": frozenset(),
    }
    partitions = {TOPICS[0]: range(4), TOPICS[1]: range(2)}

    result = assign(subscriptions, {}, partitions)

    assert result["a"] | result["b"] == {(TOPICS[0], index) for index in range(4)} | {
        (TOPICS[1], index) for index in range(2)
    }
    assert len(result["a"]) == 2
    assert {topic for topic, _ in result["a"]} == {TOPICS[0]}
    assert (result["c"], result["d"]) == (frozenset(), frozenset())
