"""Changes of in-sync replicas on their way to the controller and back."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.broker.replica_isr import ALTER_PARTITION, IsrChanges
from headrace.cores.replication.messages import AlterPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

TOPIC = UUID(int=5)


class Asker:
    """A partition that hears the answers."""

    def __init__(self, index):
        self.topic, self.topic_id, self.index = "t", TOPIC, index
        self.heard = []
        self.replicated = None

    def isr_answered(self, request, answer):
        self.heard.append((request, answer.error, answer.isr))


class HeldControl:
    """A controller that answers when a test says so."""

    def __init__(self):
        self.asked = []

    async def ask(self, api_key, request, *, purpose):
        assert ALTER_PARTITION == api_key
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((request, answer))
        return await answer


def change(*isr, epoch=4):
    """A wish for another ISR."""
    return AlterPartition(leader_epoch=2, partition_epoch=epoch, isr=tuple((node, 10) for node in isr))


def accepted(request):
    """The controller agrees to everything."""
    return AlterPartitionResponse(
        topics=tuple(
            ResponseTopicData(
                topic_id=topic.topic_id,
                partitions=tuple(
                    ResponsePartitionData(
                        partition_index=one.partition_index,
                        leader_epoch=one.leader_epoch,
                        partition_epoch=one.partition_epoch + 1,
                        isr=tuple(state.broker_id for state in one.new_isr_with_epochs),
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


@pytest.fixture
def control(monkeypatch):
    """The controller of a broker that waits no time between tries."""
    monkeypatch.setattr("headrace.broker.replica_isr.BACKOFF_S", 0)
    return HeldControl()


def run(control, scene):
    """Play a scene with the changes of broker 1."""

    async def play():
        changes = IsrChanges(SimpleNamespace(node_id=1, broker_epoch=10, control=control))
        await scene(changes)
        changes.stop()

    asyncio.run(play())


async def turns(count=5):
    """Let others run."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_changes_are_gathered_and_never_overtake(control):
    """Is one request under way at a time, with all that came up meanwhile in the next?"""
    first, second = Asker(0), Asker(1)

    async def scene(changes):
        changes.want(first, change(1, 2))
        await turns()
        changes.want(first, change(1, epoch=5))
        changes.want(second, change(1, 3))
        await turns()
        assert 1 == len(control.asked)
        request, answer = control.asked[0]
        answer.set_result(accepted(request))
        await turns()
        request, answer = control.asked[1]
        assert [0, 1] == [one.partition_index for topic in request.topics for one in topic.partitions]
        answer.set_result(accepted(request))
        await turns()

    run(control, scene)
    assert [(change(1, 2), ErrorCode.NONE, (1, 2)), (change(1, epoch=5), ErrorCode.NONE, (1,))] == first.heard
    assert [(change(1, 3), ErrorCode.NONE, (1, 3))] == second.heard


@pytest.mark.parametrize("refusal", ["whole", "partition", "missing", "silence"])
def test_refusals_are_handed_back(control, refusal):
    """Does a leader hear of every way in which the controller can say no, or nothing?"""
    asker = Asker(0)
    row = ResponsePartitionData(partition_index=0, error_code=int(ErrorCode.INVALID_UPDATE_VERSION))
    answers = {
        "whole": AlterPartitionResponse(error_code=int(ErrorCode.STALE_BROKER_EPOCH)),
        "partition": AlterPartitionResponse(topics=(ResponseTopicData(topic_id=TOPIC, partitions=(row,)),)),
        "missing": AlterPartitionResponse(),
        "silence": KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no"),
    }
    codes = {
        "whole": ErrorCode.STALE_BROKER_EPOCH,
        "partition": ErrorCode.INVALID_UPDATE_VERSION,
        "missing": ErrorCode.UNKNOWN_SERVER_ERROR,
        "silence": ErrorCode.REQUEST_TIMED_OUT,
    }

    async def scene(changes):
        changes.want(asker, change(1))
        await turns()
        _, answer = control.asked[0]
        told = answers[refusal]
        if isinstance(told, KafkaError):
            answer.set_exception(told)
        else:
            answer.set_result(told)
        await turns(10)

    run(control, scene)
    assert [codes[refusal]] == [code for _, code, _ in asker.heard]
