"""The transaction APIs as clients of each version meet them, and what tools see."""

import pytest

from headrace.broker.handlers import (
    api27_write_txn_markers,
    api65_describe_transactions,
    api66_list_transactions,
)
from headrace.broker.partition import Partition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from unit.broker.transaction_teller import NEW, SMALL, Teller, committed, teller_at
from unit.broker.transaction_teller import teller as teller

# --- InitProducerId


def test_init(teller):
    """Does a transactional id get an identity, the next epoch with each claim, and an idempotent producer one too?"""
    assert teller.init() == (0, (0, 0))
    assert teller.init() == (0, (0, 1))
    assert teller.init("u") == (0, (1, 0))
    assert teller.init(None) == (0, (2, 0))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": ""}, ErrorCode.INVALID_REQUEST),
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 7}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 7}, ErrorCode.INVALID_REQUEST),
        ({"name": None, "epoch": 7}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_init_refusals(teller, fields, code):
    """Is a claim refused that is wrong in itself, and nothing given out?"""
    assert teller.init(**fields) == (code, (-1, -1))


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
def test_init_fenced(teller, version, code):
    """Is a replaced producer told in the words its version knows?"""
    producer_id, epoch = teller.init()[1]
    teller.init()

    assert teller.init(version=version, producer_id=producer_id, epoch=epoch)[0] == code


def test_coordinator_is_not_there(desk):
    """Is a client sent to look for the coordinator where its topic does not exist yet?"""
    assert Teller(desk).init()[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE


# --- AddPartitionsToTxn


def test_add_partitions(teller):
    """Does the first partition open the transaction, and can a broker ask which ones it has?"""
    teller.desk.create("b")
    identity = teller.init()[1]

    assert teller.add(identity, ("a", 0)) == [0]
    assert teller.state() == "Ongoing"
    assert teller.verify(identity, ("a", 0), ("b", 0)) == [0, ErrorCode.TRANSACTION_ABORTABLE]
    assert teller.verify(identity, ("b", 0), verify_only=False) == [0]
    assert teller.verify(identity, ("a", 0), ("b", 0)) == [0, 0]


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (("nowhere", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("a", 1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("a", -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("__consumer_offsets", 0), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_one_bad_partition_spoils_all(teller, place, code):
    """Is nothing added if one partition cannot be, and is each told which it was?"""
    identity = teller.init()[1]

    assert teller.add(identity, ("a", 0), place) == [ErrorCode.OPERATION_NOT_ATTEMPTED, code]
    assert teller.state() == "Empty"


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_add_fenced(teller, version, code):
    """Is a replaced producer told in the words its version knows, by both ways to add?"""
    old = teller.init()[1]
    teller.init()

    assert teller.add(old, ("a", 0), version=version) == [code]
    assert teller.add_offsets(old, "g", version=version) == code
    assert teller.end(old, version=version)[0] == code


def test_wrong_ids(teller):
    """Are unknown transactional ids and foreign producer ids refused, and empty names no names?"""
    teller.init()
    unmapped = ErrorCode.INVALID_PRODUCER_ID_MAPPING

    assert teller.add((0, 0), ("a", 0), name="nobody") == [unmapped]
    assert teller.add((9, 0), ("a", 0)) == [unmapped]
    assert teller.add((0, 0), ("a", 0), name="") == [ErrorCode.INVALID_REQUEST]
    assert teller.add_offsets((0, 0), "g", name="nobody") == unmapped
    assert teller.add_offsets((0, 0), "g", name="") == ErrorCode.INVALID_REQUEST
    assert teller.end((9, 0))[0] == unmapped
    assert teller.end((0, 0), name="")[0] == ErrorCode.INVALID_REQUEST
    assert teller.end((0, 0), commit=True)[0] == ErrorCode.INVALID_TXN_STATE


# --- WriteTxnMarkers


def write_markers(teller, identity, topic="a", index=0, *, commit=False, coordinator_epoch=0, version=1):
    """A marker from elsewhere; the error code."""
    marker = WritableTxnMarker(
        producer_id=identity[0],
        producer_epoch=identity[1],
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(index,)),),
    )
    answer = teller.desk.ask(api27_write_txn_markers.API, WriteTxnMarkersRequest(markers=(marker,)), version=version)
    return answer.markers[0].topics[0].partitions[0].error_code


def test_markers_from_elsewhere(teller):
    """Can another broker, or an administrator, end a transaction here, unless it is behind the times?"""
    identity = teller.init()[1]
    teller.produce(identity, version=NEW)

    assert write_markers(teller, identity, coordinator_epoch=3) == 0
    assert teller.stable() == (2, 2)
    assert write_markers(teller, identity, coordinator_epoch=2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write_markers(teller, (identity[0], identity[1] - 1)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write_markers(teller, identity, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_markers_for_a_group(teller):
    """Does a marker from elsewhere make a group's offsets count?"""
    before = committed(teller)
    identity = teller.init()[1]
    teller.commit_offset(identity)
    index = teller.broker.groups.partition_for("g")

    assert write_markers(teller, identity, "__consumer_offsets", index, commit=True) == 0
    assert committed(teller) != before
    assert teller.commit_offset(identity, offset=9) == 0


def test_markers_for_a_partition_led_elsewhere(teller):
    """Is the coordinator of another broker sent on when a partition, or a group's partition, is not led here?"""
    identity = teller.init()[1]
    index = teller.broker.groups.partition_for("g")

    async def lose():
        for topic, place in (("a", 0), ("__consumer_offsets", index)):
            partition = teller.broker.partitions.require(topic, place)
            partition.follow(partition.leader_epoch + 1)

    teller.desk.run(lose())

    assert write_markers(teller, identity) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert write_markers(teller, identity, "__consumer_offsets", index) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (None, ErrorCode.REQUEST_TIMED_OUT),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE),
    ],
)
def test_markers_that_wait_for_replicas(open_desk, monkeypatch, heard, told):
    """Is a marker answered that does not become safe in time, whose leader changes, or that is committed just so?"""
    teller = teller_at(open_desk({**SMALL, "request.timeout.ms": "1"}))
    identity = teller.init()[1]

    def when_safe(partition, offset, done):
        if heard is not None:
            done(KafkaError(heard, ""))

    monkeypatch.setattr(Partition, "when_safe", when_safe)

    assert write_markers(teller, identity) == told


def test_markers_where_too_few_replicas_are_in_sync(teller, monkeypatch):
    """Is a marker refused, and not written, while it could not become safe?"""
    identity = teller.init()[1]

    def refuse(partition):
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "one of two")

    monkeypatch.setattr(Partition, "check_enough_replicas", refuse)

    assert write_markers(teller, identity) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert teller.stable() == (0, 0)


# --- looking


def test_describe(teller):
    """Is a transaction described with its partitions, and what is not known refused?"""
    teller.desk.create("b", partitions=2)
    identity = teller.init()[1]
    teller.add(identity, ("b", 1), ("a", 0), ("b", 0))

    request = DescribeTransactionsRequest(transactional_ids=("t", "nobody", ""))
    found, unknown, empty = teller.desk.ask(api65_describe_transactions.API, request).transaction_states

    assert (found.producer_id, found.producer_epoch) == identity
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert found.transaction_start_time_ms == teller.desk.now_ms
    assert [(each.topic, each.partitions) for each in found.topics] == [("a", (0,)), ("b", (0, 1))]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


def listed(teller, **filters):
    """The ids that ListTransactions gives, and the filters it did not know."""
    answer = teller.desk.ask(api66_list_transactions.API, ListTransactionsRequest(**filters))
    assert answer.error_code == 0
    return sorted(each.transactional_id for each in answer.transaction_states), answer.unknown_state_filters


def test_list(teller):
    """Does each filter of ListTransactions leave what it should?"""
    teller.init("idle")
    teller.add(teller.init("open")[1], ("a", 0), name="open")
    teller.desk.now_ms += 100

    assert listed(teller) == (["idle", "open"], ())
    assert listed(teller, state_filters=("Ongoing", "Nonsense")) == (["open"], ("Nonsense",))
    assert listed(teller, state_filters=("Nonsense",)) == ([], ("Nonsense",))
    assert listed(teller, producer_id_filters=(0,)) == (["idle"], ())
    assert listed(teller, duration_filter=100) == (["idle"], ())
    assert listed(teller, transactional_id_pattern="o.*") == (["open"], ())
    assert listed(teller, transactional_id_pattern="pe") == ([], ())
    assert listed(teller, transactional_id_pattern="") == (["idle", "open"], ())


@pytest.mark.parametrize("pattern", ["(", "a" * 10_001, "(?=a)"])
def test_list_by_no_pattern(teller, pattern):
    """Is a pattern refused that is none, too long, or beyond what RE2 knows?"""
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    answer = teller.desk.ask(api66_list_transactions.API, request)

    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
