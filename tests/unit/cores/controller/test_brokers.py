"""Brokers and controllers that join and leave."""

from uuid import UUID

import pytest

from controller_shell import CLUSTER_ID, SESSION_MS, ControllerShell, directories
from headrace.cores.controller.broker_epochs import check_broker_epoch
from headrace.cores.controller.brokers import register_controller
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import (
    BrokerEndpoint,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)


def test_epoch_is_the_offset_of_the_registration():
    """Does a broker that has read the metadata up to its epoch know its own registration?"""
    cluster = ControllerShell(brokers=3)
    cluster.create("a", (1, 2), (2, 3))
    cluster.silence(1)

    epoch = cluster.register(1, rack="r", end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=9092),))

    record = cluster.records[epoch]
    assert isinstance(record, RegisterBrokerRecord)
    assert (1, epoch, True, "r", "h") == (
        record.broker_id,
        record.broker_epoch,
        record.fenced,
        record.rack,
        record.end_points[0].host,
    )
    assert cluster.next_offset - 1 == epoch


def test_same_process_keeps_its_epoch():
    """Does a registration that is sent again change what it says and nothing else?"""
    cluster = ControllerShell(brokers=1)
    old = cluster.metadata.brokers[1]

    epoch = cluster.register(1, incarnation_id=old.incarnation_id, rack="moved")

    assert old.broker_epoch == epoch
    assert ("moved", False) == (cluster.metadata.brokers[1].rack, cluster.metadata.brokers[1].fenced)


def test_used_id_is_refused_while_its_broker_is_alive():
    """Is a second process under one id refused until the first one's session is over?"""
    cluster = ControllerShell(brokers=1)
    cluster.now_ms += SESSION_MS

    with pytest.raises(KafkaError, match="Another broker is registered with that broker id") as refused:
        cluster.register(1)
    assert ErrorCode.DUPLICATE_BROKER_REGISTRATION == refused.value.code

    cluster.now_ms += 1
    cluster.register(1)


def test_fenced_broker_that_was_just_heard_of_keeps_its_id():
    """Is the id of a broker that registered but does not serve yet taken as well?"""
    cluster = ControllerShell()
    cluster.register(1)

    with pytest.raises(KafkaError) as refused:
        cluster.register(1)
    assert ErrorCode.DUPLICATE_BROKER_REGISTRATION == refused.value.code


def test_broker_that_stopped_comes_back_at_once():
    """Need a broker that was told it may go not wait for its own session to end?"""
    cluster = ControllerShell(brokers=2)
    assert cluster.beat(1, wants_shutdown=True).should_shut_down

    cluster.register(1)


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        (
            {"cluster_id": "other"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {CLUSTER_ID}, but got cluster ID other",
        ),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED, "does not support registering ZK"),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
        ({"log_dirs": (UUID(int=2),)}, ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request"),
        ({"log_dirs": directories(9) * 2}, ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request"),
        (
            {"log_dirs": directories(1)},
            ErrorCode.INVALID_REGISTRATION,
            "Broker 1 is already registered with directory",
        ),
        ({"features": {}}, ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"),
        (
            {"features": {"metadata.version": (7, 24)}},
            ErrorCode.UNSUPPORTED_VERSION,
            (
                "Unable to register because the broker does not support finalized version 25 of metadata.version. "
                "The broker wants a version between 7 and 24, inclusive."
            ),
        ),
        (
            {"features": {"metadata.version": (7, 25)}},
            ErrorCode.UNSUPPORTED_VERSION,
            "does not support finalized version 1 of group.version. The broker wants a version between 0 and 0",
        ),
        (
            {"features": {"metadata.version": (7, 25), "group.version": (0, 1), "new.version": (1, 2)}},
            ErrorCode.UNSUPPORTED_VERSION,
            "does not support finalized version 0 of new.version",
        ),
    ],
)
def test_broker_that_does_not_fit_is_refused(fields, code, words):
    """Is each kind of unfit broker refused in Kafka's words, and nothing changed?"""
    cluster = ControllerShell(brokers=1)
    cluster.commit([FeatureLevelRecord(name="group.version", feature_level=1)])
    before = cluster.next_offset

    with pytest.raises(KafkaError) as refused:
        cluster.register(9, **fields)

    assert code == refused.value.code
    assert words in refused.value.message
    assert before == cluster.next_offset
    assert [1] == list(cluster.metadata.brokers)


def test_any_metadata_version_fits_where_none_is_finalized():
    """Can brokers register before the cluster has settled on a version?"""
    cluster = ControllerShell()
    cluster.metadata.features.clear()

    cluster.register(1, features={"metadata.version": (7, 8)})

    assert [1] == list(cluster.metadata.brokers)


@pytest.mark.parametrize(
    ("previous", "elr"), [(None, (1,)), (-1, ()), ("same", (1,)), (0, ())], ids=["untold", "unclean", "clean", "older"]
)
def test_unclean_restart_ends_eligibility(previous, elr):
    """Is a broker that did not stop cleanly, or cannot prove it, taken out of the ELR (KIP-966)?"""
    cluster = ControllerShell(brokers=2, elr=True)
    cluster.create("a", (1, 2), min_insync_replicas="2")
    cluster.silence(1)
    assert ((2,), (1,)) == (cluster.partition("a").isr, cluster.partition("a").elr)

    epoch = cluster.metadata.brokers[1].broker_epoch
    cluster.register(1, previous_broker_epoch=epoch if previous == "same" else previous)

    assert elr == cluster.partition("a").elr


def test_restart_before_the_session_is_over_ends_leadership():
    """Does a new process not inherit what the last one led, though it was never fenced?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))
    cluster.now_ms += SESSION_MS + 1

    cluster.register(1)

    assert (2, (2,)) == (cluster.partition("a").leader, cluster.partition("a").isr)
    assert cluster.metadata.brokers[1].fenced


def test_unregistered_broker_leads_nothing_and_is_gone():
    """Do partitions fail over from a broker that is taken out, and stay on it as replicas?"""
    cluster = ControllerShell(brokers=3, elr=True)
    cluster.create("a", (1, 2), min_insync_replicas="2")

    cluster.unregister(1)

    state = cluster.partition("a")
    assert (2, (2,), (1, 2)) == (state.leader, state.isr, state.replicas)
    assert [2, 3] == list(cluster.metadata.brokers)
    assert isinstance(cluster.records[-1], UnregisterBrokerRecord)


def test_unknown_broker_cannot_be_unregistered():
    """Is a broker that is not there refused in Kafka's words?"""
    with pytest.raises(KafkaError, match="Broker ID 7 is not currently registered") as refused:
        ControllerShell().unregister(7)
    assert ErrorCode.BROKER_ID_NOT_REGISTERED == refused.value.code


@pytest.mark.parametrize(
    ("broker", "epoch", "words"),
    [(7, 1, "No broker registration found for broker id 7"), (1, 99, "but got broker epoch 99")],
)
def test_stale_epochs_are_refused(broker, epoch, words):
    """Is a broker that is not registered, or was under another epoch, told so?"""
    with pytest.raises(KafkaError, match=words) as refused:
        check_broker_epoch(ControllerShell(brokers=1).metadata, broker, epoch)
    assert ErrorCode.STALE_BROKER_EPOCH == refused.value.code


def test_controller_registers_once():
    """Is a controller's registration written, and not written again while it says the same?"""
    cluster = ControllerShell()
    wanted = RegisterControllerRecord(controller_id=3, incarnation_id=UUID(int=7))
    cluster.run(register_controller, wanted)
    before = cluster.next_offset

    cluster.run(register_controller, wanted)

    assert {3: wanted} == cluster.metadata.controllers
    assert before == cluster.next_offset
