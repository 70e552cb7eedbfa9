"""How transactions end."""

import pytest

from headrace.cores.transactions.ending import complete, markers_of
from headrace.model.errors import ErrorCode, KafkaError

A, B = ("a", 0), ("b", 3)


def ended(coordinator, *, commit, version=2):
    """A producer that has just ended a transaction: who it was, who it is."""
    producer = coordinator.init()
    coordinator.add(producer, A, B, version=version)
    return producer, coordinator.end(producer, commit=commit, version=version)


@pytest.mark.parametrize(("commit", "word"), [(True, "Commit"), (False, "Abort")])
@pytest.mark.parametrize(("version", "bump"), [(0, 0), (1, 0), (2, 1)])
def test_two_phases(coordinator, commit, word, version, bump):
    """Is the decision recorded before any marker goes out, and closed when all have, with an epoch for each in v2?"""
    old, new = ended(coordinator, commit=commit, version=version)

    assert coordinator.state == f"Prepare{word}"
    assert new == (old.producer_id, old.producer_epoch + bump)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_epoch, markers.commit, markers.partitions) == (new.producer_epoch, commit, (A, B))
    assert coordinator.state == f"Complete{word}"
    assert coordinator.core.transactions["t"].partitions == frozenset()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_repeated_end(coordinator, version, commit):
    """Is an end that comes twice told to wait, then answered as the first time, and the opposite refused?"""
    old, new = ended(coordinator, commit=commit, version=version)

    with pytest.raises(KafkaError) as waiting:
        coordinator.end(old, commit=commit, version=version)
    with pytest.raises(KafkaError) as opposite:
        coordinator.end(old, commit=not commit, version=version)
    assert waiting.value.code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert opposite.value.code == ErrorCode.INVALID_TXN_STATE

    coordinator.write_markers()
    assert coordinator.end(old, commit=commit, version=version) == new
    with pytest.raises(KafkaError) as opposite:
        coordinator.end(old, commit=not commit, version=version)
    assert opposite.value.code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_late_end_does_not_decide_the_next_transaction(coordinator, commit):
    """Is an EndTxn of the last transaction refused once the next one is open? (A16)"""
    old, new = ended(coordinator, commit=True)
    coordinator.write_markers()
    coordinator.add(new, B)

    with pytest.raises(KafkaError) as refusal:
        coordinator.end(old, commit=commit)

    assert refusal.value.code == ErrorCode.PRODUCER_FENCED
    assert coordinator.state == "Ongoing"


@pytest.mark.parametrize(
    ("identity", "code"),
    [
        ((999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((1000, 0), ErrorCode.PRODUCER_FENCED),
        ((1000, 2), ErrorCode.PRODUCER_FENCED),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_wrong_producer(coordinator, identity, code, version):
    """Is an end refused that comes from another producer than the one that began?"""
    coordinator.init()
    coordinator.add(coordinator.init(), A)

    with pytest.raises(KafkaError) as refusal:
        coordinator.end(identity, commit=True, version=version)

    assert refusal.value.code == code
    assert coordinator.state == "Ongoing"


def test_unknown_transactional_id(coordinator):
    """Is the end of something nobody has claimed refused?"""
    with pytest.raises(KafkaError) as refusal:
        coordinator.end((1, 0), commit=True)

    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("version", "commit"), [(1, True), (1, False), (2, True)])
def test_nothing_to_end(coordinator, version, commit):
    """Is an end without a transaction refused, where it is not a version 2 producer that aborts?"""
    producer = coordinator.init()

    with pytest.raises(KafkaError) as refusal:
        coordinator.end(producer, commit=commit, version=version)

    assert refusal.value.code == ErrorCode.INVALID_TXN_STATE


def test_abort_of_nothing(coordinator):
    """May a version 2 producer abort where nothing was opened, again and again, and get a new epoch each time?"""
    producer = coordinator.init()
    for epoch in (1, 2, 3):
        coordinator.now_ms += 5
        producer = coordinator.end(producer, commit=False)
        assert producer == (1000, epoch)
        assert coordinator.core.transactions["t"].started_ms == coordinator.now_ms
        (markers,) = coordinator.write_markers()
        assert markers.partitions == ()
    with pytest.raises(KafkaError) as refusal:
        coordinator.end(producer, commit=True)
    assert refusal.value.code == ErrorCode.INVALID_TXN_STATE


def test_epochs_used_up(coordinator):
    """Does the end of the last epoch give the producer another id, told again if it asks again?"""
    last = coordinator.at_epoch(32766)
    coordinator.add(last, A)

    renewed = coordinator.end(last, commit=True)

    assert renewed == (1001, 0)
    (markers,) = coordinator.write_markers()
    assert (markers.producer_id, markers.producer_epoch) == (1000, 32767)
    assert coordinator.end(last, commit=True) == renewed
    coordinator.add(renewed, B)
    assert coordinator.state == "Ongoing"
    with pytest.raises(KafkaError) as refusal:
        coordinator.end(last, commit=True)
    assert refusal.value.code == ErrorCode.PRODUCER_FENCED


def test_markers_again_after_a_failover(coordinator):
    """Are the markers of a decided transaction written again by the next coordinator, and is it closed then?"""
    ended(coordinator, commit=True)
    asked = list(coordinator.effects)

    coordinator.fail_over()

    assert coordinator.effects == asked
    coordinator.write_markers()
    assert coordinator.state == "CompleteCommit"


def test_late_completion_is_harmless(coordinator):
    """Does a completion that comes twice, or for a transaction that is over, change nothing?"""
    _, new = ended(coordinator, commit=True)
    (markers,) = coordinator.write_markers()
    coordinator.add(new, A)
    coordinator.end(new, commit=False)
    records = len(coordinator.log)

    for late in (markers, markers):
        coordinator.take(complete(coordinator.core, late, coordinator.now_ms))

    assert len(coordinator.log) == records
    assert markers_of(coordinator.core.transactions["t"]) != markers
