"""A node's place in the cluster: registered, unfenced, gone, and back."""

import logging

import pytest

from headrace.broker import membership
from headrace.broker.formatting import NotFormatted, is_alone, require_format
from headrace.broker.handlers import api62_broker_registration
from headrace.broker.membership import NotAdmitted
from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.broker import BrokerConfig
from headrace.storage.memory_files import MemoryFiles
from headrace.testing.ports import free_ports
from headrace.wire.messages.broker_registration import BrokerRegistrationResponse

ALONE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
}


def registration(desk):
    """The broker as the cluster knows it."""
    return desk.broker.metadata.brokers[1]


def hasty(desk):
    """The broker's settings, with no time to register."""
    return BrokerConfig.from_properties(
        {**desk.broker.static_config.static, "initial.broker.registration.timeout.ms": "0"}
    )


def test_a_broker_that_is_alone_registers_with_itself(desk):
    """Is a node that is its own cluster registered, unfenced, and told of with its listeners and log dirs?"""
    known = registration(desk)

    assert (known.fenced, known.broker_epoch) == (False, desk.broker.broker_epoch)
    assert [(one.name, one.port) for one in known.end_points] == [
        ("PLAINTEXT", desk.broker.endpoints["PLAINTEXT"].port)
    ]
    assert list(known.log_dirs) == desk.broker.directory_ids
    assert [one.name for one in desk.broker.metadata.controllers[1].end_points] == ["CONTROLLER"]


def test_a_clean_stop_is_remembered(desk):
    """Does the next process say with which epoch the last one stopped, and get a higher one?"""
    epoch = desk.broker.broker_epoch
    desk.restart()

    assert {log_dir.stopped_epoch for log_dir in desk.broker.store.log_dirs} == {epoch}
    assert desk.broker.broker_epoch > epoch
    assert not registration(desk).fenced


def test_a_crash_is_no_clean_stop(desk):
    """Does a broker that was killed come back at once, though its old session has not run out?"""
    epoch, incarnation = desk.broker.broker_epoch, registration(desk).incarnation_id
    desk.crash()

    assert {log_dir.stopped_epoch for log_dir in desk.broker.store.log_dirs} == {-1}
    assert desk.broker.broker_epoch > epoch
    assert registration(desk).incarnation_id != incarnation


def test_leaders_are_gone_before_the_broker_is(desk):
    """After a clean stop, did the last metadata say that nobody leads and that the broker is fenced?"""
    desk.create("t")
    metadata = desk.broker.metadata
    desk.run(desk.broker.membership.leave())

    assert metadata.brokers[1].fenced
    assert (metadata.topics["t"].partitions[0].leader, metadata.topics["t"].partitions[0].isr) == (-1, (1,))


def test_no_controlled_shutdown(open_desk):
    """Does a broker that is told so stop without handing over?"""
    desk = open_desk({"controlled.shutdown.enable": "false"})
    desk.create("t")
    desk.run(desk.broker.membership.leave())

    assert not registration(desk).fenced


def test_the_last_one_waits_for_nobody(desk, monkeypatch):
    """Does a broker that stops with all others wait no longer than until it sees that no controller is there?"""
    looks = [False, True]

    async def silent(api_key, request, **_):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    async def is_deserted():
        return looks.pop(0)

    for name, value in (("LEAVE_LOOK_S", -1.0), ("LEAVE_SILENCE_S", 1e9), ("LEAVE_TIMEOUT_S", 1e9)):
        monkeypatch.setattr(membership, name, value)
    monkeypatch.setattr(desk.broker.control, "ask", silent)
    monkeypatch.setattr(desk.broker.quorum, "is_deserted", is_deserted)
    desk.run(desk.broker.membership.leave())
    monkeypatch.undo()

    assert looks == []
    assert not registration(desk).fenced


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, r"Another broker with node\.id 1 is running in this cluster\."),
        (ErrorCode.INCONSISTENT_CLUSTER_ID, r"This node's log dirs are of cluster .*, the controllers' of another\."),
        (ErrorCode.UNSUPPORTED_VERSION, "runs at a level of a feature that this broker does not support"),
        (ErrorCode.STALE_BROKER_EPOCH, r"could not register within .*: STALE_BROKER_EPOCH\."),
    ],
)
def test_refused(desk, monkeypatch, code, sentence):
    """Does a broker that is not let in say why in one sentence?"""
    monkeypatch.setattr(desk.broker, "config", hasty(desk))

    async def refuse(api_key, request, **_):
        assert api_key == api62_broker_registration.API.key
        return BrokerRegistrationResponse(error_code=int(code))

    monkeypatch.setattr(desk.broker.control, "ask", refuse)
    with pytest.raises(NotAdmitted, match=sentence):
        desk.run(desk.broker.membership.register(-1))
    monkeypatch.undo()


def test_refused_for_now(desk, monkeypatch, caplog):
    """Is it in the log once why a broker waits, long before it gives up?"""
    caplog.set_level(logging.WARNING)
    codes = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 2 + [ErrorCode.NONE]

    async def refuse(api_key, request, **_):
        return BrokerRegistrationResponse(error_code=int(codes.pop(0)), broker_epoch=7)

    monkeypatch.setattr(desk.broker.control, "ask", refuse)
    monkeypatch.setattr(membership, "RETRY_S", 0)
    monkeypatch.setattr(desk.broker.membership, "_spawn", lambda work: work.close())
    monkeypatch.setattr(desk.broker.membership, "broker_epoch", 0)
    desk.run(desk.broker.membership.register(-1))
    monkeypatch.undo()

    (line,) = [each.getMessage() for each in caplog.records if each.getMessage().startswith("registration_refused")]
    assert line.startswith(
        "registration_refused broker=1 error=DUPLICATE_BROKER_REGISTRATION "
        "reason=Another broker with node.id 1 is running in this cluster."
    )


def test_controllers_of_another_cluster(desk, monkeypatch):
    """Is a broker that finds no leader, but controllers of another cluster, told so rather than that nobody answers?"""
    monkeypatch.setattr(desk.broker, "config", hasty(desk))

    async def silent(api_key, request, **_):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    monkeypatch.setattr(desk.broker.control, "ask", silent)
    monkeypatch.setattr(type(desk.broker.quorum), "is_elsewhere", True)
    with pytest.raises(NotAdmitted, match="the controllers' of another"):
        desk.run(desk.broker.membership.register(-1))
    monkeypatch.undo()


def test_nobody_answers(desk, monkeypatch):
    """Is a cluster without a controller an end of the start, too?"""
    monkeypatch.setattr(desk.broker, "config", hasty(desk))

    async def silent(api_key, request, **_):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    monkeypatch.setattr(desk.broker.control, "ask", silent)
    with pytest.raises(NotAdmitted, match="REQUEST_TIMED_OUT"):
        desk.run(desk.broker.membership.register(-1))
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("settings", "alone"),
    [
        ({}, True),
        ({"controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9094"}, False),
        ({"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "localhost:9093"}, True),
        ({"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "localhost:9093,b:9094"}, False),
        (
            {
                "process.roles": "broker",
                "controller.quorum.voters": "2@127.0.0.1:9093",
                "listeners": "PLAINTEXT://127.0.0.1:9092",
            },
            False,
        ),
    ],
)
def test_who_is_alone(settings, alone):
    """Is a node known for one that works with others, by its settings?"""
    assert is_alone(BrokerConfig.from_properties({**ALONE, **settings})) == alone


def test_a_node_of_several_must_be_formatted():
    """Is a node that does not know its cluster refused with what to type?"""
    voters = {"controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9094"}
    with pytest.raises(NotFormatted, match="kafka-storage format --cluster-id"):
        require_format(BrokerConfig.from_properties({**ALONE, **voters}), MemoryFiles())
    require_format(BrokerConfig.from_properties(ALONE), MemoryFiles())


def test_a_node_that_is_alone_founds_its_quorum(open_desk):
    """Does a node whose file names only itself to ask become the one voter, and stay it over a restart?"""
    (port,) = free_ports(1)
    desk = open_desk(
        {
            "controller.quorum.voters": "",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
        }
    )
    desk.create("t")
    desk.restart()

    assert desk.broker.quorum.is_active
    assert "t" in desk.broker.metadata.topics
