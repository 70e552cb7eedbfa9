"""The next step of a member towards its target: what is taken, what is given, and who has to wait."""

from msgspec.structs import replace

from headrace.cores.groups.streams_member import MemberState, StreamsMember, epochs_of
from headrace.cores.groups.streams_reconciliation import Goal, reconciled
from headrace.cores.groups.streams_tasks import NO_TASKS, Tasks
from streams_shell import active

MEMBER = StreamsMember(member_id="a", process_id="p", member_epoch=3, previous_member_epoch=2)


def holding(tasks, **fields):
    """A member with tasks that it got in epoch 1."""
    return replace(MEMBER, assigned=tasks, epochs=epochs_of(tasks, NO_TASKS, {}, 1), **fields)


def goal(target, *, active_elsewhere=(), in_process=()):
    """A target of epoch 5, and tasks that are still somewhere else."""
    return Goal(
        epoch=5,
        target=target,
        is_active_somewhere=lambda task: task in active_elsewhere,
        is_in_process=lambda task, process_id: process_id == "p" and task in in_process,
    )


def standby(*partitions):
    return Tasks(standby={"0": frozenset(partitions)})


def test_taking_comes_before_giving():
    """Is nothing given while the member has something to give up, and does it stay in its epoch?"""
    member = reconciled(holding(active(_0=[0, 1])), goal(active(_0=[1, 2])), None)

    assert (MemberState.UNREVOKED_TASKS, 3) == (member.state, member.member_epoch)
    assert (active(_0=[1]), active(_0=[0])) == (member.assigned, member.pending_revocation)
    assert member == reconciled(member, goal(active(_0=[1, 2])), active(_0=[0, 1]))


def test_confirmed_is_given():
    """Does a member that has confirmed get what is free, each task with the epoch it got it in?"""
    waiting = reconciled(holding(active(_0=[0, 1])), goal(active(_0=[1, 2])), None)
    member = reconciled(waiting, goal(active(_0=[1, 2])), active(_0=[1]))

    assert (MemberState.STABLE, 5, 3) == (member.state, member.member_epoch, member.previous_member_epoch)
    assert (active(_0=[1, 2]), NO_TASKS) == (member.assigned, member.pending_revocation)
    assert {("0", 1): 1, ("0", 2): 5} == member.epochs


def test_what_a_member_has_already_given_up_is_not_waited_for():
    """Does a member that says it has less go on at once?"""
    member = reconciled(holding(active(_0=[0, 1])), goal(active(_0=[1])), active(_0=[1]))

    assert (MemberState.STABLE, active(_0=[1])) == (member.state, member.assigned)


def test_next_revocation_is_one_of_the_next_epoch():
    """Does a member that has met one deadline get another epoch, and so another deadline, for what comes next?"""
    waiting = reconciled(holding(active(_0=[0, 1, 2])), goal(active(_0=[1, 2])), None)
    member = reconciled(waiting, goal(active(_0=[2])), active(_0=[1, 2]))

    assert (MemberState.UNREVOKED_TASKS, 4) == (member.state, member.member_epoch)
    assert active(_0=[1]) == member.pending_revocation


def test_task_of_another_is_waited_for():
    """Does a member get what is free, and wait for what somebody else still has?"""
    wanted = active(_0=[0, 1])
    member = reconciled(MEMBER, goal(wanted, active_elsewhere=[("0", 1)]), None)

    assert (MemberState.UNRELEASED_TASKS, active(_0=[0])) == (member.state, member.assigned)
    assert member == reconciled(member, goal(wanted, active_elsewhere=[("0", 1)]), None)
    assert wanted == reconciled(member, goal(wanted), None).assigned


def test_copy_may_be_where_the_task_is_not():
    """May a copy come while the task runs in another process, and must it wait for one in its own?"""
    assert standby(0) == reconciled(MEMBER, goal(standby(0), active_elsewhere=[("0", 0)]), None).assigned
    assert NO_TASKS == reconciled(MEMBER, goal(standby(0), in_process=[("0", 0)]), None).assigned


def test_role_changes_by_way_of_nothing():
    """Does a member give up a copy before it gets to run the task?"""
    member = reconciled(holding(standby(0)), goal(active(_0=[0]), in_process=[("0", 0)]), standby(0))

    assert (NO_TASKS, standby(0)) == (member.assigned, member.pending_revocation)

    member = reconciled(member, goal(active(_0=[0]), in_process=[("0", 0)]), NO_TASKS)

    assert (MemberState.UNRELEASED_TASKS, NO_TASKS) == (member.state, member.pending_revocation)
    assert active(_0=[0]) == reconciled(member, goal(active(_0=[0])), NO_TASKS).assigned
