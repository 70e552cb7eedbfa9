"""The way to the active controller: here, elsewhere, moved, missing."""

import asyncio

import pytest

from headrace.broker.controller import NotController
from headrace.cores.controller import Outcome
from headrace.cores.raft.voters import Endpoint
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import NoOpRecord
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

ALLOCATE, HEARTBEAT = 67, 63


def block(desk):
    """Ask for producer ids."""
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=desk.broker.broker_epoch)
    return desk.run(desk.broker.control.ask(ALLOCATE, request, timeout_s=5))


def test_the_controller_here_is_asked_without_a_wire(desk):
    """Does a broker that is the active controller hear its own answers?"""
    first, second = block(desk), block(desk)

    assert (first.error_code, first.producer_id_len) == (0, 1000)
    assert second.producer_id_start == first.producer_id_start + 1000


def test_a_controller_that_has_moved_is_looked_for(desk, monkeypatch):
    """Is it tried again while nobody decides?"""
    run, refusals = desk.broker.controller.run, [NotController("moved"), NotController("still")]

    async def reluctant(command):
        if refusals:
            raise refusals.pop()
        return await run(command)

    monkeypatch.setattr(desk.broker.controller, "run", reluctant)

    assert block(desk).error_code == 0
    assert refusals == []


def test_a_silent_controller_is_left_for_the_next(desk, monkeypatch):
    """Is a question to a controller that lost its power put to the next one as soon as that leads?"""

    async def ask():
        asked, over, gone, quorum = asyncio.Event(), asyncio.Event(), asyncio.Event(), desk.broker.quorum

        async def silent(reader, writer):
            await reader.readexactly(4)
            asked.set()
            await over.wait()
            writer.close()
            await writer.wait_closed()
            gone.set()

        async with await asyncio.start_server(silent, "127.0.0.1") as server:
            there = Endpoint("CONTROLLER", "127.0.0.1", server.sockets[0].getsockname()[1])
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr(type(quorum), "is_active", False)
                elsewhere.setattr(type(quorum), "leader_id", 2)
                elsewhere.setattr(type(quorum), "leader_endpoint", lambda self: there)
                request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=desk.broker.broker_epoch)
                waiting = asyncio.create_task(desk.broker.control.ask(ALLOCATE, request, timeout_s=20))
                await asyncio.wait_for(asked.wait(), 10)
            quorum.on_leader()
            answer = await asyncio.wait_for(waiting, 10)
            over.set()
            # It lets go of its socket before the loop does.
            await gone.wait()
        return answer

    assert desk.run(ask()).error_code == 0


def test_nobody_decides(desk, monkeypatch):
    """Does it end with an error that says why, when the time is over?"""

    async def never(command):
        raise NotController("not me")

    monkeypatch.setattr(desk.broker.controller, "run", never)
    request = AllocateProducerIdsRequest(broker_id=1)
    with pytest.raises(KafkaError, match=r"The active controller did not answer: not me\.") as caught:
        desk.run(desk.broker.control.ask(ALLOCATE, request, timeout_s=0.01))

    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_controller_here_that_is_busy(desk):
    """Is a broker heard again and again by its own controller, though what was decided before is still being made?"""
    broker = desk.broker
    contacts = []

    async def busy():
        begun, made, quorum = asyncio.Event(), asyncio.Event(), broker.quorum
        take_over = quorum.on_commit

        async def slow(records):
            begun.set()
            await made.wait()
            await take_over(records)

        quorum.on_commit = slow
        creation = asyncio.ensure_future(broker.controller.run(lambda metadata: Outcome([NoOpRecord()], None)))
        await begun.wait()
        for _ in range(2):
            contacts.append(broker.controller.liveness.session(1).contact_ms)
            with pytest.raises(KafkaError, match="did not decide within"):
                await broker.control.ask(HEARTBEAT, broker.membership._heartbeat(), timeout_s=0.05)
        contacts.append(broker.controller.liveness.session(1).contact_ms)
        made.set()
        await creation
        quorum.on_commit = take_over

    desk.run(busy())
    assert contacts[0] < contacts[1] < contacts[2]


def test_a_broken_metadata_log_is_told_at_once(desk, monkeypatch):
    """Is nobody kept waiting for a node that cannot take part any more?"""
    fault = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log failed.")
    monkeypatch.setattr(desk.broker.quorum, "_fault", fault)
    with pytest.raises(KafkaError) as caught:
        block(desk)
    monkeypatch.undo()

    assert (caught.value.code, caught.value.message) == (fault.code, fault.message)


def test_metadata_is_awaited(desk):
    """Does `until` return when the metadata says it, and give up when it does not?"""

    async def created():
        waiting = desk.broker.until(lambda metadata: "late" in metadata.topics, 5)
        task = desk.broker.spawn(waiting)
        await desk.broker.until(lambda metadata: True, 0)
        return task

    desk.run(created())
    desk.create("late")
    desk.run(desk.broker.until(lambda metadata: "late" in metadata.topics, 0))
    with pytest.raises(KafkaError) as caught:
        desk.run(desk.broker.until(lambda metadata: "never" in metadata.topics, 0))

    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
