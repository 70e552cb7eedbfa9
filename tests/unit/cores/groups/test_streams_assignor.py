"""The sticky task assignor: everything is run, copies are elsewhere, nobody has too much, little moves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.groups.streams_assignor import StreamsMemberSpec, SubtopologySpec, assign
from headrace.cores.groups.streams_tasks import NO_TASKS, Tasks, each_task

subtopologies = st.dictionaries(
    st.sampled_from("0123"),
    st.builds(SubtopologySpec, tasks=st.integers(1, 9), is_stateful=st.booleans()),
    max_size=4,
)
processes = st.dictionaries(st.integers(0, 9).map("m{}".format), st.sampled_from("pqrs"), min_size=1, max_size=10)


def spec(process_of, targets=None):
    """Members by their processes, with what they were to have up to now."""
    targets = targets or {}
    return {
        member_id: StreamsMemberSpec(process_id=process, target=targets.get(member_id, NO_TASKS))
        for member_id, process in process_of.items()
    }


def check(process_of, told, replicas, targets):
    """What must hold of every assignment."""
    assert process_of.keys() == targets.keys()
    tasks = {(name, index) for name, each in told.items() for index in range(each.tasks)}
    running = Counter(task for target in targets.values() for task in each_task(target.active))

    assert Counter(tasks) == running

    possible = min(replicas, len(set(process_of.values())) - 1)
    copies = Counter(task for target in targets.values() for task in each_task(target.standby))

    assert Counter({task: possible for task in tasks if told[task[0]].is_stateful and possible}) == copies

    places = Counter(
        (process_of[member_id], task)
        for member_id, target in targets.items()
        for role in target.by_role
        for task in each_task(role)
    )

    assert all(count == 1 for count in places.values())
    assert not any(target.warmup for target in targets.values())


@given(processes, processes, subtopologies, subtopologies, st.integers(0, 3), st.integers(0, 3))
def test_everything_is_run_and_copied(first, then, told, later, replicas, more):
    """Does every task have one runner and as many copies as there can be, from nothing and after any change?"""
    targets = assign(spec(first), told, replicas)
    check(first, told, replicas, targets)
    again = assign(spec(then, targets), later, more)
    check(then, later, more, again)


@given(st.sets(st.integers(0, 9), min_size=1), st.sets(st.integers(0, 9), min_size=1), subtopologies)
def test_shares_are_even(first, then, told):
    """Do members in processes of their own have as many tasks as any other, but for one, after any change?"""
    targets = assign(spec({f"m{n}": f"p{n}" for n in first}), told, 0)
    again = assign(spec({f"m{n}": f"p{n}" for n in then}, targets), told, 0)
    loads = [len(list(each_task(target.active))) for target in again.values()]

    assert max(loads) - min(loads) <= 1


@given(processes, subtopologies, st.integers(0, 2))
def test_nothing_moves_without_need(process_of, told, replicas):
    """Does an assignment stay as it is when nothing has changed and nobody has copies, and the same twice in a row?"""
    targets = assign(spec(process_of), told, replicas)

    assert targets == assign(spec(process_of), told, replicas)
    if not replicas:
        assert targets == assign(spec(process_of, targets), told, 0)


def test_larger_process_gets_more():
    """Is the work shared out by members, wherever they are, and do two threads of a process count as two?"""
    told = {"0": SubtopologySpec(tasks=6, is_stateful=False)}
    targets = assign(spec({"a": "p", "b": "p", "c": "q"}), told, 0)

    assert [2, 2, 2] == [len(target.active["0"]) for target in targets.values()]


def test_new_member_takes_only_its_share():
    """Does a newcomer get its share, and does everything else stay?"""
    told = {"0": SubtopologySpec(tasks=6, is_stateful=True)}
    before = assign(spec({"a": "p", "b": "q"}), told, 0)
    after = assign(spec({"a": "p", "b": "q", "c": "r"}, before), told, 0)

    assert 2 == len(after["c"].active["0"])
    assert all(after[name].active["0"] < before[name].active["0"] for name in ("a", "b"))


def test_copies_are_promoted():
    """Does a task go to the member that has a copy of its state?"""
    told = {"0": SubtopologySpec(tasks=2, is_stateful=True)}
    before = {
        "a": Tasks(active={"0": frozenset({0})}),
        "b": Tasks(active={"0": frozenset({1})}),
        "c": Tasks(standby={"0": frozenset({0, 1})}),
    }
    after = assign(spec({"b": "q", "c": "r"}, before), told, 1)

    assert {"0": frozenset({0})} == after["c"].active
    assert {"0": frozenset({1})} == after["b"].active


def test_nobody_there():
    """Is nothing assigned to nobody, and nothing of nothing to somebody?"""
    assert {} == assign({}, {"0": SubtopologySpec(tasks=3, is_stateful=True)}, 1)
    assert {"a": NO_TASKS} == assign(spec({"a": "p"}), {}, 1)
