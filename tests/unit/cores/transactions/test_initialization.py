"""A producer claims its transactional id."""

import pytest

from headrace.model.errors import ErrorCode, KafkaError

A = ("a", 0)


def test_first_claim(coordinator):
    """Does a new transactional id get a new producer id at epoch 0?"""
    assert coordinator.init() == (1000, 0)
    assert coordinator.init("u") == (1001, 0)
    assert coordinator.state == "Empty"


def test_each_claim_fences_the_one_before(coordinator):
    """Does every producer that comes up get the next epoch, and is the one before refused?"""
    first = coordinator.init()

    assert coordinator.init() == (first.producer_id, 1)
    with pytest.raises(KafkaError) as refusal:
        coordinator.add(first, A)
    assert refusal.value.code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_out_of_bounds(coordinator, timeout_ms):
    """Is a timeout refused that is not positive, or longer than the broker allows, and nothing written?"""
    with pytest.raises(KafkaError) as refusal:
        coordinator.init(timeout_ms=timeout_ms)

    assert refusal.value.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert coordinator.log == []


@pytest.mark.parametrize("version", [1, 2])
def test_open_transaction_is_aborted_first(make_coordinator, version):
    """Is an open transaction aborted when a producer comes up, which is told to ask again until that is done?"""
    coordinator = make_coordinator(transaction_version=version)
    old = coordinator.init()
    coordinator.add(old, A)

    for _ in range(2):
        with pytest.raises(KafkaError) as refusal:
            coordinator.init()
        assert refusal.value.code == ErrorCode.CONCURRENT_TRANSACTIONS

    (markers,) = coordinator.write_markers()
    assert (markers.commit, markers.partitions) == (False, (A,))
    assert markers.producer_epoch == old.producer_epoch + 1
    assert coordinator.init() == (old.producer_id, old.producer_epoch + 2)


def test_comes_back_with_its_identity(coordinator):
    """Does a producer that says who it was get the next epoch, and the same one if it has to ask again? (KIP-360)"""
    old = coordinator.init()

    bumped = coordinator.init(expected=old)
    assert bumped == (old.producer_id, 1)
    assert coordinator.init(expected=old) == bumped
    assert coordinator.init(expected=bumped) == (old.producer_id, 2)


def test_replaced_producer_does_not_come_back(coordinator):
    """Is a producer fenced that says who it was after another one has taken over?"""
    old = coordinator.init()
    coordinator.init()

    with pytest.raises(KafkaError) as refusal:
        coordinator.init(expected=old)

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED


def test_replaced_producer_does_not_abort(coordinator):
    """Does the rightful producer's open transaction live on when a replaced one comes back?"""
    old = coordinator.init()
    new = coordinator.init()
    coordinator.add(new, A)

    with pytest.raises(KafkaError) as refusal:
        coordinator.init(expected=old)

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED
    assert coordinator.state == "Ongoing"


def test_unknown_producer_id_comes_back(coordinator):
    """Is a producer fenced that says it had an id this transactional id never had?"""
    coordinator.init()

    with pytest.raises(KafkaError) as refusal:
        coordinator.init(expected=(5, 0))

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED


def test_comes_back_after_its_id_was_forgotten(coordinator):
    """Does a producer whose transactional id has expired get a new producer id?"""
    assert coordinator.init(expected=(5, 7)) == (1000, 0)


@pytest.mark.parametrize("says_who_it_was", [False, True])
def test_epochs_used_up(coordinator, says_who_it_was):
    """Does a producer get another producer id when there is no epoch left, and the same again if it must ask again?"""
    last = coordinator.at_epoch(32766)
    expected = last if says_who_it_was else None

    renewed = coordinator.init(expected=expected)

    assert renewed == (1001, 0)
    if says_who_it_was:
        assert coordinator.init(expected=expected) == renewed


def test_epochs_used_up_by_somebody_else(coordinator):
    """Is a producer of an older epoch fenced although there is no epoch left to give?"""
    coordinator.at_epoch(32766)

    with pytest.raises(KafkaError) as refusal:
        coordinator.init(expected=(1000, 3))

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED


def test_retry_at_another_coordinator_is_fenced(coordinator):
    """Is a repeated question fenced after a failover, as the log does not say who had asked?"""
    old = coordinator.init()
    coordinator.init(expected=old)
    coordinator.fail_over()

    with pytest.raises(KafkaError) as refusal:
        coordinator.init(expected=old)

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED
