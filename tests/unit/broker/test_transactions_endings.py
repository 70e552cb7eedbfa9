"""How transactions end when nobody is there to end them, or when the broker is not."""

import asyncio

import pytest
from msgspec.structs import replace

from headrace.broker.coordinators import marker_post, transactions
from headrace.broker.handlers import (
    api20_delete_topics,
)
from headrace.cores.transactions.transaction import EPOCH_LAST, to_record
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from unit.broker.transaction_teller import NEW, SMALL, Teller, teller_at, watch_end
from unit.broker.transaction_teller import teller as teller


def test_timeout(open_desk, monkeypatch):
    """Is a transaction aborted by itself when it takes too long, and its producer fenced?"""
    desk = open_desk(SMALL | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1"})
    desk.run(desk.broker.transactions.ensure_topic())
    desk.create("a")
    teller = Teller(desk)
    identity = teller.init(timeout_ms=100)[1]
    teller.produce(identity, version=NEW)
    marked = watch_end(teller, monkeypatch)
    desk.now_ms += 101

    desk.run(asyncio.wait_for(marked, 10))
    teller.settle()

    assert teller.state() == "CompleteAbort"
    assert teller.end(identity, commit=True)[0] in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    assert teller.produce(identity, sequence=1, version=NEW)[0] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_deleted_topic_does_not_hold_up_the_end(teller):
    """Does a transaction end although one of its topics is gone?"""
    teller.desk.create("b")
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)
    teller.produce(identity, "b", version=NEW)
    teller.desk.ask(api20_delete_topics.API, DeleteTopicsRequest(topics=(DeleteTopicState(name="b"),)))

    assert teller.end(identity)[0] == 0
    teller.settle()

    assert teller.state() == "CompleteCommit"


@pytest.mark.parametrize("ending", ["restart", "crash", "power_cut"])
def test_open_transaction_outlives_the_broker(teller, ending):
    """Can a producer end after a restart what it began before, its records held back meanwhile?"""
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)

    getattr(teller.desk, ending)()
    again = Teller(teller.desk)

    assert again.stable() == (0, 1)
    assert again.state() == "Ongoing"
    assert again.end(identity)[0] == 0
    again.settle()
    assert again.stable() == (2, 2)


@pytest.mark.parametrize("ending", ["crash", "power_cut"])
@pytest.mark.parametrize("commit", [True, False])
def test_killed_between_decision_and_markers(teller, monkeypatch, ending, commit):
    """Are the markers of a decided transaction written after a crash that came before them?"""
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)
    with monkeypatch.context() as patch:

        async def never(*_):
            await asyncio.get_running_loop().create_future()

        patch.setattr(marker_post, "write_markers", never)
        after = teller.end(identity, commit=commit)[1]
        assert teller.state() == ("PrepareCommit" if commit else "PrepareAbort")
        for task in tuple(teller.broker._tasks):
            task.cancel()
        teller.settle()

    getattr(teller.desk, ending)()
    again = Teller(teller.desk)
    again.settle()

    assert again.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert again.stable() == (2, 2)
    assert again.produce(after, version=NEW) == (0, 2)


def test_markers_are_tried_until_they_are_written(teller, monkeypatch):
    """Is a marker that a partition refuses for a while tried again until it is written?"""
    monkeypatch.setattr(transactions, "RETRY_FIRST_S", 0.0)
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)
    write, refusals = marker_post.write_markers, [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]

    async def reluctant(broker, marker, partitions):
        if refusals:
            return dict.fromkeys(partitions, refusals.pop())
        return await write(broker, marker, partitions)

    monkeypatch.setattr(marker_post, "write_markers", reluctant)
    teller.end(identity)
    teller.settle()

    assert refusals == []
    assert teller.state() == "CompleteCommit"


def test_deposed_coordinator_leaves_it(teller, monkeypatch):
    """Does a coordinator that has been replaced leave the transaction to the one that knows better?"""
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)

    async def deposed(broker, marker, partitions):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTION_COORDINATOR_FENCED)

    monkeypatch.setattr(marker_post, "write_markers", deposed)
    teller.end(identity)
    teller.settle()

    assert teller.state() == "PrepareCommit"


def test_late_transaction_in_the_last_epoch(open_desk, monkeypatch):
    """Is a producer id fetched where a late transaction cannot be aborted without one?"""
    desk = open_desk(SMALL | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1"})
    teller = teller_at(desk)
    teller.init(timeout_ms=100)
    core = desk.broker.transactions.shard_for("t").core
    core.replay(*to_record(replace(core.transactions["t"], producer_epoch=EPOCH_LAST)))
    teller.produce((0, EPOCH_LAST), version=NEW)
    marked = watch_end(teller, monkeypatch)
    desk.now_ms += 101

    desk.run(asyncio.wait_for(marked, 10))
    teller.settle()

    assert core.transactions["t"].identity == (1, 0)
    assert teller.stable() == (2, 2)
    # The producer that aborts, not knowing that it was done for it, is told its new identity.
    assert teller.end((0, EPOCH_LAST), commit=False) == (0, (1, 0))


def test_coordinator_that_reads_its_log_again(teller, monkeypatch):
    """Is a marker that is still to be tried again left to the coordinator that has read the log since?"""
    monkeypatch.setattr(transactions, "RETRY_FIRST_S", 0.0)
    identity = teller.init()[1]
    teller.add(identity, ("a", 0))
    teller.produce(identity)
    shard = teller.broker.transactions.shard_for("t")
    write, refusals = marker_post.write_markers, [ErrorCode.KAFKA_STORAGE_ERROR]

    async def reluctant(broker, marker, partitions):
        if refusals:
            shard._forget()
            await shard.load(broker.readers)
            return dict.fromkeys(partitions, refusals.pop())
        return await write(broker, marker, partitions)

    monkeypatch.setattr(marker_post, "write_markers", reluctant)
    teller.end(identity, version=4)
    teller.settle()

    assert teller.state() == "CompleteCommit"
    # One record and one marker.
    assert teller.stable() == (2, 2)
