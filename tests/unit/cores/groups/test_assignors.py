"""The assignors: the same as Kafka's, even, and reluctant to move anything."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.groups.assignors import ASSIGNORS, served_assignors
from headrace.cores.groups.assignors.mixed import assign_mixed
from headrace.cores.groups.assignors.range import assign_ranges
from headrace.cores.groups.assignors.spec import GroupSpec, MemberSpec
from headrace.cores.groups.assignors.uniform import assign_uniformly

CASES = [json.loads(line) for line in (Path(__file__).parent / "assignor_cases.jsonl").read_text().splitlines()]
"""Groups that grow out of each other, with what the assignors of Apache Kafka 4.3.1 made of them."""


def topic(number):
    return UUID(int=int(number) + 1)


def spec_of(case):
    """A group in the words of a case: topics by number."""
    return GroupSpec(
        members={
            member_id: MemberSpec(
                topics=frozenset(map(topic, member["topics"])),
                target={topic(number): frozenset(indexes) for number, indexes in member["target"].items()},
                instance_id=member["instance"],
            )
            for member_id, member in case["members"].items()
        },
        partition_counts={topic(number): count for number, count in enumerate(case["counts"])},
        homogeneous=case["homogeneous"],
    )


def in_numbers(targets):
    return {
        member_id: {str(topic_id.int - 1): sorted(indexes) for topic_id, indexes in target.items()}
        for member_id, target in targets.items()
    }


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_assignments_are_those_of_kafka(assignor):
    """Does each assignor give every member what Kafka's gives it, in all cases that were asked?"""
    cases = [case for case in CASES if case["assignor"] == assignor]

    assert len(cases) > 40
    for case in cases:
        assert case["expected"] == in_numbers(ASSIGNORS[assignor](spec_of(case))), case


@st.composite
def groups(draw, *, homogeneous):
    """A group whose members may have had partitions, of topics they still read or not."""
    counts = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    names = draw(st.lists(st.sampled_from([f"m{number}" for number in range(8)]), min_size=1, unique=True))
    subsets = st.frozensets(st.integers(0, len(counts) - 1))
    same = draw(subsets)
    free = [(number, index) for number, count in enumerate(counts) for index in range(count)]
    owners = draw(st.lists(st.sampled_from([None, *names]), min_size=len(free), max_size=len(free)))
    members = {}
    for name in names:
        target = {}
        for (number, index), owner in zip(free, owners, strict=True):
            if owner == name:
                target.setdefault(topic(number), set()).add(index)
        read = same if homogeneous else draw(subsets)
        members[name] = MemberSpec(
            topics=frozenset(map(topic, read)),
            target={topic_id: frozenset(indexes) for topic_id, indexes in target.items()},
        )
    partition_counts = {topic(number): count for number, count in enumerate(counts)}
    return GroupSpec(members=members, partition_counts=partition_counts, homogeneous=homogeneous)


def check_complete(spec, targets):
    """Everything that is read has one owner, who reads it."""
    owned = [
        (topic_id, index) for target in targets.values() for topic_id, indexes in target.items() for index in indexes
    ]
    read = {topic_id for member in spec.members.values() for topic_id in member.topics}

    assert sorted(owned) == sorted(
        (topic_id, index) for topic_id in read for index in range(spec.partition_counts[topic_id])
    )
    for member_id, target in targets.items():
        assert target.keys() <= spec.members[member_id].topics


def loads(targets):
    return [sum(map(len, target.values())) for target in targets.values()]


def again(spec, targets):
    """The same group, whose members were to own this."""
    members = {
        member_id: MemberSpec(topics=member.topics, target=targets[member_id])
        for member_id, member in spec.members.items()
    }
    return GroupSpec(members=members, partition_counts=spec.partition_counts, homogeneous=spec.homogeneous)


@given(spec=groups(homogeneous=True))
def test_uniform_is_complete_even_and_sticky(spec):
    """Is everything given out, evenly but for one, moving only what must move, and nothing the second time?"""
    targets = assign_uniformly(spec)
    check_complete(spec, targets)
    given = loads(targets)

    assert max(given) - min(given) <= 1
    for member_id, member in spec.members.items():
        held = {(topic_id, index) for topic_id in member.topics for index in member.target.get(topic_id, ())}
        kept = {(topic_id, index) for topic_id, indexes in targets[member_id].items() for index in indexes} & held
        assert len(kept) >= min(len(held), *given), "a partition moved that need not have"
    assert targets == assign_uniformly(again(spec, targets))


@given(spec=groups(homogeneous=False))
def test_mixed_is_complete_and_settles(spec):
    """Is everything given out where members read different topics, and does nothing move the second time?"""
    targets = assign_mixed(spec)
    check_complete(spec, targets)

    assert targets == assign_mixed(again(spec, targets))


@given(spec=groups(homogeneous=False))
def test_mixed_leaves_no_simple_improvement(spec):
    """Is there no partition left that could go to a reader with two partitions less?"""
    targets = assign_mixed(spec)
    load = dict(zip(targets, loads(targets), strict=True))
    for member_id, target in targets.items():
        for topic_id in target:
            lightest = min(load[other] for other, member in spec.members.items() if topic_id in member.topics)

            assert load[member_id] - lightest <= 1


@given(spec=groups(homogeneous=False))
def test_range_is_complete_and_even_per_topic(spec):
    """Does each reader of a topic get one run of it, evenly but for one?"""
    targets = assign_ranges(spec)
    check_complete(spec, targets)
    for topic_id in spec.partition_counts:
        readers = [member_id for member_id, member in spec.members.items() if topic_id in member.topics]
        runs = [sorted(targets[member_id].get(topic_id, ())) for member_id in readers]

        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs if run)
        assert not runs or max(map(len, runs)) - min(map(len, runs)) <= 1


def test_partition_two_members_had_goes_to_one():
    """Is a partition that a custom assignor had given to two members given to one of them?"""
    target = {topic(0): frozenset({0, 1})}
    member = MemberSpec(topics=frozenset({topic(0)}), target=target)
    for homogeneous in (True, False):
        spec = GroupSpec(members={"a": member, "b": member}, partition_counts={topic(0): 2}, homogeneous=homogeneous)
        targets = assign_uniformly(spec)
        check_complete(spec, targets)

        assert [1, 1] == loads(targets)


def test_nobody_gets_nothing():
    """Does an empty group get an empty assignment?"""
    spec = GroupSpec(members={}, partition_counts={}, homogeneous=True)

    assert [{}, {}] == [assign(spec) for assign in ASSIGNORS.values()]


def test_settings_may_name_kafkas_classes():
    """Are assignors found under the names of Kafka's classes, and unknown ones passed over?"""
    name = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"

    assert ("range",) == served_assignors((name, "com.example.Mine"))
    assert ("uniform", "range") == served_assignors(())
