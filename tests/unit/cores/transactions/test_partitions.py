"""Which partitions are in a transaction."""

import pytest

from headrace.model.errors import ErrorCode, KafkaError

A, B = ("a", 0), ("b", 3)


def test_first_partition_opens(coordinator):
    """Does the first partition open the transaction, and do further ones join it without moving its start?"""
    producer = coordinator.init()
    coordinator.add(producer, A)
    coordinator.now_ms += 10
    coordinator.add(producer, B)

    transaction = coordinator.core.transactions["t"]
    assert coordinator.state == "Ongoing"
    assert transaction.partitions == {A, B}
    assert (transaction.started_ms, transaction.updated_ms) == (1_000_000, 1_000_010)


def test_known_partition_is_not_written_again(coordinator):
    """Is a partition that the transaction has already answered without a record?"""
    producer = coordinator.init()
    coordinator.add(producer, A)
    records = len(coordinator.log)

    coordinator.add(producer, A)

    assert len(coordinator.log) == records


@pytest.mark.parametrize("step", ["add", "verify"])
@pytest.mark.parametrize(
    ("identity", "code"),
    [
        ((999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((1000, 0), ErrorCode.PRODUCER_FENCED),
        ((1000, 2), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_wrong_producer(coordinator, step, identity, code):
    """Is a producer refused that is not the transactional id's, or not of its epoch?"""
    coordinator.init()
    coordinator.init()
    records = len(coordinator.log)

    with pytest.raises(KafkaError) as refusal:
        getattr(coordinator, step)(identity, A)

    assert refusal.value.code == code
    assert len(coordinator.log) == records


@pytest.mark.parametrize("step", ["add", "verify"])
def test_unknown_transactional_id(coordinator, step):
    """Is a transactional id refused that nobody has claimed?"""
    with pytest.raises(KafkaError) as refusal:
        getattr(coordinator, step)((1000, 0), A)

    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("step", ["add", "verify"])
@pytest.mark.parametrize("commit", [False, True])
def test_between_two_transactions(coordinator, step, commit):
    """Is the next transaction told to wait while the markers of the last are being written?"""
    producer = coordinator.init()
    coordinator.add(producer, A)
    after = coordinator.end(producer, commit=commit)

    with pytest.raises(KafkaError) as refusal:
        getattr(coordinator, step)(after, B)

    assert refusal.value.code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_verifying_tells_what_is_missing(coordinator):
    """Does a partition's leader learn which partitions the transaction has, and is nothing written for it?"""
    producer = coordinator.init()
    coordinator.add(producer, A)
    records = len(coordinator.log)

    assert coordinator.verify(producer, A, B) == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(coordinator.log) == records


def test_verifying_after_the_end(coordinator):
    """Is a write of a finished transaction told so when all of it is over, in the version without new epochs? (A17)"""
    producer = coordinator.init()
    coordinator.add(producer, A, version=0)
    coordinator.end(producer, commit=False, version=0)
    coordinator.write_markers()

    assert coordinator.verify(producer, A) == {A: ErrorCode.TRANSACTION_ABORTABLE}
