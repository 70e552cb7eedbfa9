"""What the active controller does by itself."""

import asyncio
from functools import partial

import pytest
from tests.unit.broker.cluster_guest import Guest

from headrace.broker.controller import NotController
from headrace.broker.handlers.api19_create_topics import API as CREATE_TOPICS
from headrace.cores.controller import IsrChange, alter_partitions
from headrace.cores.controller.replicas import UNTOLD_EPOCH
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

SESSION_MS = 9_000


@pytest.fixture
def guest(desk):
    """A second broker that serves, as far as anybody knows."""
    return Guest(desk).join()


def place(desk, name, *replicas):
    """Create a topic of one partition on these brokers."""
    placed = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=(placed,))
    (result,) = desk.ask(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,))).topics
    assert result.error_code == 0, result.error_message
    return desk.broker.metadata.topics[name]


def test_a_silent_broker_is_fenced(desk, guest, monkeypatch):
    """Is a broker fenced that was not heard of for a session, and does another lead what it led?"""
    topic = place(desk, "t", 2, 1)
    controller = desk.broker.controller
    now_ms = desk.run(_now(controller))
    controller.liveness.session(1).contact_ms = now_ms + SESSION_MS
    monkeypatch.setattr(controller, "now_ms", lambda: now_ms + SESSION_MS + 1000)

    assert topic.partitions[0].leader == 2
    desk.run(controller.duties._fence())

    assert guest.registration.fenced
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (1, (1,))


async def _now(controller):
    return controller.now_ms()


def test_a_broker_that_is_heard_of_is_not(desk, guest):
    """Is a broker left alone whose session has not run out?"""
    desk.run(desk.broker.controller.duties._fence())

    assert not guest.registration.fenced


def test_leaders_go_back(desk, guest):
    """Does the first replica lead again, but not before it is in sync?"""
    topic, duties = place(desk, "t", 2, 1), desk.broker.controller.duties
    guest.beat(want_fence=True)
    guest.beat()

    desk.run(duties._balance())
    assert topic.partitions[0].leader == 1

    in_sync = IsrChange(
        topic_id=topic.topic_id,
        partition=0,
        leader_epoch=topic.partitions[0].leader_epoch,
        partition_epoch=topic.partitions[0].partition_epoch,
        isr=[(1, UNTOLD_EPOCH), (2, UNTOLD_EPOCH)],
    )
    command = partial(alter_partitions, broker_id=1, broker_epoch=desk.broker.broker_epoch, wanted=[in_sync])
    desk.run(desk.broker.controller.run(command))
    desk.run(duties._balance())
    assert topic.partitions[0].leader == 2


def test_signs_of_life_are_for_others(desk):
    """Does a controller that is alone write nothing, and one that is not write something?"""
    duties = desk.broker.controller.duties
    before = desk.broker.quorum.applied_offset
    desk.run(duties._show_life())
    assert desk.broker.quorum.applied_offset == before

    Guest(desk).join()
    before = desk.broker.quorum.applied_offset
    desk.run(duties._show_life())
    assert desk.broker.quorum.applied_offset == before + 1


def test_a_duty_that_loses_the_leadership_itself(desk):
    """Does a duty end in silence whose own decision was the one in which the node lost the lead?"""
    controller = desk.broker.controller
    duties, pauses = controller.duties, [0.0]

    async def decide():
        controller.on_leadership(False)
        raise NotController("This node is not the active controller.")

    async def scene():
        begun = asyncio.get_running_loop().create_future()
        begun.set_result(None)
        pause_s = lambda: pauses.pop() if pauses else duties._session_s()  # noqa: E731 - the first is over at once
        duty = asyncio.ensure_future(duties._every(begun, pause_s, decide))
        duties._tasks.append(duty)
        await asyncio.wait({duty})
        controller.on_leadership(True)
        return duty

    assert desk.run(scene()).cancelled()


def test_duties_end_with_the_leadership(desk):
    """Does a node that is the active controller no longer do nothing by itself?"""
    duties = desk.broker.controller.duties
    tasks = list(duties._tasks)
    assert tasks

    async def lose():
        desk.broker.controller.on_leadership(False)

    desk.run(lose())
    assert all(task.cancelled() or task.cancelling() for task in tasks)

    async def gain():
        desk.broker.controller.on_leadership(True)

    desk.run(gain())
    assert len(duties._tasks) == len(tasks)
