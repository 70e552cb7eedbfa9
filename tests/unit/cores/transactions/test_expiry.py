"""What happens by itself."""

import pytest

from headrace.cores.transactions import expiry
from headrace.cores.transactions.ending import NeedsProducerId
from headrace.model.errors import ErrorCode, KafkaError

A = ("a", 0)


def tick(coordinator, name):
    """A timer runs out."""
    return coordinator.take(coordinator.core.on_timer((name,), coordinator.now_ms))


@pytest.mark.parametrize("version", [1, 2])
def test_late_transaction_is_aborted(make_coordinator, version):
    """Is a transaction aborted when its time is over, not before, and its producer fenced?"""
    coordinator = make_coordinator(transaction_version=version)
    producer = coordinator.init(timeout_ms=500)
    coordinator.add(producer, A)
    coordinator.now_ms += 500
    tick(coordinator, expiry.ABORT)
    assert coordinator.state == "Ongoing"

    coordinator.now_ms += 1
    tick(coordinator, expiry.ABORT)

    assert coordinator.state == "PrepareAbort"
    (markers,) = coordinator.write_markers()
    assert markers.producer_epoch == producer.producer_epoch + 1
    with pytest.raises(KafkaError) as refusal:
        coordinator.add(producer, A)
    assert refusal.value.code == ErrorCode.PRODUCER_FENCED
    with pytest.raises(KafkaError):
        coordinator.end(producer, commit=True, version=version)
    assert coordinator.state == "CompleteAbort"


def test_late_transaction_in_the_last_epoch(coordinator):
    """Is a late transaction aborted too when that takes another producer id?"""
    producer = coordinator.at_epoch(32766)
    coordinator.add(producer, A)
    coordinator.now_ms += 60_001

    tick(coordinator, expiry.ABORT)

    assert coordinator.effects == [NeedsProducerId("t")]
    coordinator.take(expiry.abort_late(coordinator.core, "t", 77, coordinator.now_ms))
    coordinator.write_markers()
    assert coordinator.core.transactions["t"].identity == (77, 0)
    assert coordinator.take(expiry.abort_late(coordinator.core, "t", 78, coordinator.now_ms)).records == []


def test_idle_ids_are_forgotten(make_coordinator):
    """Is an id forgotten that nobody used for long, while one that is in use or was used lately stays?"""
    coordinator = make_coordinator(id_expiration_ms=1000)
    coordinator.init("idle")
    coordinator.add(coordinator.init("busy"), A, name="busy")
    coordinator.now_ms += 1000
    coordinator.init("young")

    tick(coordinator, expiry.REMOVE)

    assert set(coordinator.core.transactions) == {"busy", "young"}
    assert coordinator.init("idle").producer_epoch == 0


def test_many_expire_in_turns(make_coordinator):
    """Are very many expired ids removed in several steps, one right behind the other?"""
    coordinator = make_coordinator(id_expiration_ms=1)
    for number in range(expiry.RECORDS_MAX + 1):
        coordinator.init(f"t{number}")
    coordinator.now_ms += 1

    first = tick(coordinator, expiry.REMOVE)
    assert len(first.records) == expiry.RECORDS_MAX
    assert first.timers == [((expiry.REMOVE,), coordinator.now_ms)]
    assert len(tick(coordinator, expiry.REMOVE).records) == 1


def test_timers_go_on(make_coordinator):
    """Are both timers set when the log has been read, and set again each time by the settings of that time?"""
    coordinator = make_coordinator(abort_interval_ms=7, removal_interval_ms=9)
    coordinator.fail_over()
    assert coordinator.timers == {
        (expiry.ABORT,): coordinator.now_ms + 7,
        (expiry.REMOVE,): coordinator.now_ms + 9,
    }

    coordinator.now_ms += 100
    tick(coordinator, expiry.ABORT)

    assert coordinator.timers[(expiry.ABORT,)] == coordinator.now_ms + 7
