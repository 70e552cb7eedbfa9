"""One step of a member towards its target, case by case."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from headrace.cores.groups.consumer_member import ConsumerMember, MemberState
from headrace.cores.groups.consumer_reconciliation import Goal, reconciled

STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
T = UUID(int=1)
GONE = UUID(int=2)


def member(state=STABLE, epoch=5, assigned=(), pending=()):
    """A member that got what it owns in epoch 5."""
    return ConsumerMember(
        member_id="me",
        member_epoch=epoch,
        previous_member_epoch=4,
        state=state,
        assigned={T: dict.fromkeys(assigned, 5)} if assigned else {},
        pending_revocation={T: dict.fromkeys(pending, 5)} if pending else {},
    )


def step(before, target, *, owned=None, others=(), epoch=6, new_topics=False, topics=(T,)):
    """The member's epoch, state, what it owns with the epochs, and what it is to give up, after a step."""
    owners = {(T, index): "other" for index in others}
    owners |= {(T, index): "me" for index in {*before.assigned.get(T, {}), *before.pending_revocation.get(T, {})}}
    goal = Goal(
        epoch=epoch,
        target={T: frozenset(target)} if target else {},
        topics=frozenset(topics),
        owner=lambda topic_id, index: owners.get((topic_id, index)),
    )
    said = None if owned is None else {T: owned}
    after = reconciled(before, goal, said, new_topics=new_topics)
    return after.member_epoch, after.state, after.assigned.get(T, {}), set(after.pending_revocation.get(T, {}))


@pytest.mark.parametrize(
    ("what", "before", "asked", "expected"),
    [
        ("it is there", member(assigned=(0,)), {"target": (0,), "epoch": 5}, (5, STABLE, {0: 5}, set())),
        ("only the epoch is new", member(assigned=(0,)), {"target": (0,)}, (6, STABLE, {0: 5}, set())),
        ("it gets what is free", member(assigned=(0,)), {"target": (0, 1)}, (6, STABLE, {0: 5, 1: 6}, set())),
        (
            "it waits for what another has",
            member(assigned=(0,)),
            {"target": (0, 1, 2), "others": (2,)},
            (6, UNRELEASED, {0: 5, 1: 6}, set()),
        ),
        (
            "it gives up before it gets",
            member(assigned=(0, 1)),
            {"target": (1, 2)},
            (5, UNREVOKED, {1: 5}, {0}),
        ),
        (
            "it has given up already",
            member(assigned=(0, 1)),
            {"target": (1, 2), "owned": (1,)},
            (6, STABLE, {1: 5, 2: 6}, set()),
        ),
        (
            "it has not given up yet",
            member(UNREVOKED, assigned=(1,), pending=(0,)),
            {"target": (1, 2), "owned": (0, 1)},
            (5, UNREVOKED, {1: 5}, {0}),
        ),
        (
            "it does not say what it owns",
            member(UNREVOKED, assigned=(1,), pending=(0,)),
            {"target": (1, 2)},
            (5, UNREVOKED, {1: 5}, {0}),
        ),
        (
            "it gave up, and the target has moved on",
            member(UNREVOKED, assigned=(1,), pending=(0,)),
            {"target": (0, 2), "owned": (1,), "epoch": 7},
            (5, UNREVOKED, {}, {1}),
        ),
        (
            "it gets back what it gave up",
            member(UNREVOKED, assigned=(1,), pending=(0,)),
            {"target": (0, 1), "owned": (1,), "epoch": 7},
            (7, STABLE, {0: 7, 1: 5}, set()),
        ),
        (
            "what it waited for is free",
            member(UNRELEASED, epoch=6, assigned=(0,)),
            {"target": (0, 1)},
            (6, STABLE, {0: 5, 1: 6}, set()),
        ),
        (
            "it does not read the topic any more",
            member(assigned=(0,)),
            {"target": (0,), "epoch": 5, "new_topics": True, "topics": ()},
            (5, UNREVOKED, {}, {0}),
        ),
        (
            "nor while it gives up something else",
            member(UNREVOKED, assigned=(1,), pending=(0,)),
            {"target": (1,), "new_topics": True, "topics": (), "owned": (0, 1)},
            (5, UNREVOKED, {}, {0, 1}),
        ),
        (
            "the target has a topic it does not read",
            member(),
            {"target": (0,), "topics": ()},
            (6, STABLE, {}, set()),
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_step(what, before, asked, expected):
    """Is the next step of a member the right one?"""
    assert expected == step(before, **asked), what


def test_topic_that_is_left_at_once_needs_no_word():
    """Is a topic simply gone if the member says along with it that it owns nothing of it?"""
    before = replace(member(assigned=(0,)), assigned={T: {0: 5}, GONE: {3: 5}})
    goal = Goal(epoch=5, target={T: frozenset({0})}, topics=frozenset({T}), owner=lambda *_: "me")
    after = reconciled(before, goal, {T: (0,)}, new_topics=True)

    assert (STABLE, {T: {0: 5}}, {}) == (after.state, after.assigned, after.pending_revocation)
