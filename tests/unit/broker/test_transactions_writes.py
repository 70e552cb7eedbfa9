"""What producers write in transactions: the first write waits for the coordinator, a late one is refused."""

import asyncio

import pytest

from headrace.broker.coordinators import verification
from headrace.broker.handlers import (
    api26_end_txn,
)
from headrace.model.errors import ErrorCode
from headrace.wire.messages.end_txn import EndTxnRequest
from unit.broker.transaction_teller import NEW, OLD, SMALL, Teller, committed, teller_at, watch_end
from unit.broker.transaction_teller import teller as teller

# --- the whole way


@pytest.mark.parametrize("commit", [True, False])
def test_whole_transaction_of_an_older_producer(teller, commit):
    """Do a producer's records become readable when it ends its transaction, and is the marker behind them?"""
    identity = teller.init()[1]
    teller.add(identity, ("a", 0))
    assert teller.produce(identity, count=3) == (0, 0)
    assert teller.stable() == (0, 3)

    assert teller.end(identity, commit=commit, version=4)[0] == 0
    teller.settle()

    assert teller.stable() == (4, 4)
    assert teller.state() == ("CompleteCommit" if commit else "CompleteAbort")
    teller.add(identity, ("a", 0))
    assert teller.produce(identity, sequence=3) == (0, 4)


@pytest.mark.parametrize("commit", [True, False])
def test_whole_transaction_of_a_newer_producer(teller, commit):
    """Does a producer's first write add the partition, and does each transaction have an epoch of its own?"""
    identity = teller.init()[1]
    assert teller.produce(identity, version=NEW, count=3) == (0, 0)
    assert teller.produce(identity, version=NEW, sequence=3) == (0, 3)
    assert teller.state() == "Ongoing"

    code, after = teller.end(identity, commit=commit)
    assert (code, after) == (0, (identity[0], identity[1] + 1))
    teller.settle()

    assert teller.stable() == (5, 5)
    assert teller.produce(after, version=NEW) == (0, 5)


def test_late_end_does_not_decide_a_later_transaction(teller):
    """Is an EndTxn that was on its way for too long refused, the open transaction untouched? (A16)"""
    old = teller.init()[1]
    teller.produce(old, version=NEW)
    new = teller.end(old)[1]
    teller.settle()
    teller.produce(new, version=NEW)

    assert teller.end(old, commit=False)[0] == ErrorCode.PRODUCER_FENCED
    assert teller.end(old, commit=True)[0] == ErrorCode.PRODUCER_FENCED
    assert teller.state() == "Ongoing"


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (OLD, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_late_write_of_an_older_producer(teller, version, code):
    """Is a write refused whose transaction has ended, so that it opens nothing that nobody would end? (A17)"""
    identity = teller.init()[1]
    teller.add(identity, ("a", 0))
    teller.produce(identity)
    teller.end(identity, commit=False, version=4)
    teller.settle()

    assert teller.produce(identity, sequence=1, version=version)[0] == code
    assert teller.stable() == (2, 2)


def test_late_write_of_a_newer_producer(teller):
    """Is a late write of a newer producer known by its epoch, wherever it is noticed? (A17)"""
    old = teller.init()[1]
    teller.desk.create("b")
    teller.produce(old, version=NEW)
    teller.end(old)
    teller.settle()

    assert teller.produce(old, sequence=1, version=NEW)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.produce(old, "b", version=NEW)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.stable("b") == (0, 0)


def test_write_without_being_named(teller):
    """Is a write of an older producer refused on a partition that it did not name?"""
    identity = teller.init()[1]
    teller.add(identity, ("a", 0))
    teller.desk.create("b")

    assert teller.produce(identity, "b")[0] == ErrorCode.TRANSACTION_ABORTABLE
    assert teller.produce(identity, "b", version=10)[0] == ErrorCode.INVALID_TXN_STATE
    assert teller.produce(identity, "a")[0] == 0


def test_write_unverified_where_that_is_off(open_desk):
    """Does transaction.partition.verification.enable=false let older producers write unasked, but add for newer?"""
    desk = open_desk(SMALL | {"transaction.partition.verification.enable": "false"})
    desk.run(desk.broker.transactions.ensure_topic())
    desk.create("a")
    teller = Teller(desk)

    assert teller.produce(teller.init()[1])[0] == 0
    assert teller.state() == "Empty"
    desk.create("b")
    assert teller.produce(teller.init()[1], "b", version=NEW)[0] == 0
    assert teller.state() == "Ongoing"


def test_transactional_batch_without_transactional_id(teller):
    """Is a transactional batch refused that comes without a transactional id?"""
    identity = teller.init()[1]

    assert teller.produce(identity, name=None, version=NEW)[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert teller.produce(identity, name="", version=NEW)[0] == ErrorCode.INVALID_REQUEST


def test_coordinator_away(open_desk):
    """Is a producer told to try again while its coordinator is not there, in words that producers know?"""
    desk = open_desk(SMALL)
    desk.create("a")

    assert Teller(desk).produce((1, 0))[0] == ErrorCode.NOT_ENOUGH_REPLICAS


def test_batches_of_one_producer_stay_in_order(teller):
    """Are batches that arrive while the first is being confirmed appended behind it, in their order?"""
    identity = teller.init()[1]

    async def five():
        return await asyncio.gather(*(teller.produced(identity, sequence=number, version=NEW) for number in range(5)))

    assert teller.desk.run(five()) == [(0, number) for number in range(5)]


def test_next_transaction_waits_for_the_last(open_desk):
    """Does a newer producer's write that comes before the markers are written wait for them?"""
    # After the usual 100 ms, which a slow disk may take for a marker, producers ask again themselves.
    teller = teller_at(open_desk(SMALL | {"add.partitions.to.txn.retry.backoff.max.ms": "30000"}))
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)

    async def at_once():
        request = EndTxnRequest(
            transactional_id="t", producer_id=identity[0], producer_epoch=identity[1], committed=True
        )
        ended = await teller.desk.asked(api26_end_txn.API, request)
        return await teller.produced((ended.producer_id, ended.producer_epoch), version=NEW)

    assert teller.desk.run(at_once()) == (0, 2)


def test_overtaken_confirmation(teller, monkeypatch):
    """Is a confirmed write refused if its transaction ended before it could be appended? (A17)"""
    identity = teller.init()[1]
    teller.add(identity, ("a", 0))
    confirm = verification.confirm
    marked = watch_end(teller, monkeypatch)

    async def slowly(broker, question):
        guard = await confirm(broker, question)
        request = EndTxnRequest(
            transactional_id="t", producer_id=identity[0], producer_epoch=identity[1], committed=False
        )
        await teller.desk.asked(api26_end_txn.API, request, version=4)
        await marked
        return guard

    monkeypatch.setattr(verification, "confirm", slowly)

    assert teller.produce(identity)[0] == ErrorCode.INVALID_TXN_STATE
    assert teller.stable() == (1, 1)


# --- the group's offsets


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_with_the_transaction(teller, version, commit):
    """Do a group's offsets count when, and only when, the transaction commits?"""
    before = committed(teller)
    identity = teller.init()[1]
    if version < 5:
        assert teller.add_offsets(identity, "g") == 0
    assert teller.commit_offset(identity, version=version) == 0
    pending = committed(teller)

    assert teller.end(identity, commit=commit, version=version)[0] == 0
    teller.settle()

    assert pending != before
    assert (committed(teller) == before) is not commit
    assert committed(teller) != pending


def test_offsets_without_being_named(teller):
    """Are offsets refused where the transaction does not have the group, in words of the version?"""
    identity = teller.init()[1]

    assert teller.commit_offset(identity, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert teller.commit_offset(identity, version=3) == ErrorCode.INVALID_TXN_STATE
    assert teller.commit_offset((identity[0], 5), version=5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.commit_offset((77, 0), version=5) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_offsets_of_a_replaced_producer(teller):
    """Is a replaced producer's commit refused where the new one has its transaction open, and the group unharmed?"""
    old = teller.init()[1]
    new = teller.init()[1]
    assert teller.commit_offset(new) == 0

    assert teller.commit_offset(old) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert teller.commit_offset(new, offset=6) == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"generation_id": 3, "member_id": "m"}, ErrorCode.ILLEGAL_GENERATION),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_offset_refusals(teller, fields, code):
    """Are offsets refused that are wrong in themselves?"""
    assert teller.commit_offset(teller.init()[1], **fields) == code


def test_batch_that_a_thread_must_look_into(teller):
    """Is the first batch on a compacted topic confirmed and looked into, and refused if records have no key?"""
    teller.desk.create("compacted", cleanup_policy="compact")
    identity = teller.init()[1]

    assert teller.produce(identity, "compacted", version=NEW, count=50, key=None)[0] == ErrorCode.INVALID_RECORD
    assert teller.produce(identity, "compacted", version=NEW, count=50) == (0, 0)
    assert teller.produce(identity, "compacted", version=NEW, sequence=50) == (0, 50)


def test_too_many_wait(teller):
    """Is a producer told to come again that sends more batches than may wait, and are the others in order?"""
    identity = teller.init()[1]
    allowed = verification.QUEUE_MAX

    async def flood():
        return await asyncio.gather(
            *(teller.produced(identity, sequence=number, version=NEW) for number in range(allowed + 2))
        )

    results = teller.desk.run(flood())

    assert results[:allowed] == [(0, number) for number in range(allowed)]
    assert {code for code, _ in results[allowed:]} == {ErrorCode.NOT_ENOUGH_REPLICAS}


def test_batches_behind_a_refused_one(teller):
    """Is each batch behind a refused first one refused too, with nothing written?"""
    identity = teller.init()[1]

    async def three():
        return await asyncio.gather(*(teller.produced(identity, sequence=number) for number in range(3)))

    assert [code for code, _ in teller.desk.run(three())] == [ErrorCode.TRANSACTION_ABORTABLE] * 3
    assert teller.stable() == (0, 0)
