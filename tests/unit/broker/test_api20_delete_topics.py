"""DeleteTopics."""

from uuid import UUID

import pytest

from headrace.broker.handlers.api20_delete_topics import API
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def by_name(*names, version):
    """A request to delete topics by name, as each version writes it."""
    if version >= 6:
        return DeleteTopicsRequest(topics=tuple(DeleteTopicState(name=name) for name in names))
    return DeleteTopicsRequest(topic_names=names)


def by_id(*ids):
    """A request to delete topics by id."""
    return DeleteTopicsRequest(topics=tuple(DeleteTopicState(topic_id=topic_id) for topic_id in ids))


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_deleted_topic_is_gone(desk, version):
    """Is a topic gone from metadata, service and disk when its deletion is answered, in every version?"""
    desk.create("orders", partitions=2)

    (result,) = desk.ask(API, by_name("orders", version=version), version=version).responses

    assert (result.name, result.error_code) == ("orders", 0)
    assert desk.broker.metadata.topics == {}
    assert desk.broker.partitions.of_topic("orders") == []
    assert not [name for name in desk.files.listdir("/data") if name in {"orders-0", "orders-1"}]


def test_topic_is_deleted_by_id(desk):
    """Does an id delete its topic and tell its name?"""
    topic_id = desk.create("orders").topic_id

    (result,) = desk.ask(API, by_id(topic_id)).responses

    assert (result.name, result.topic_id, result.error_code) == ("orders", topic_id, 0)
    assert desk.broker.metadata.topics == {}


def test_topic_created_again_is_empty(desk):
    """Does a topic of the same name start from nothing?"""
    desk.create("orders", retention_ms="5000")
    desk.produce("orders", 3)
    desk.ask(API, by_name("orders", version=6))

    desk.create("orders")

    partition = desk.broker.partitions.require("orders", 0)
    assert partition.log.log_end_offset == 0
    assert partition.config.retention_ms != 5000


def test_what_is_not_there_is_told(desk):
    """Are unknown names and ids told each in its way, and the rest deleted?"""
    desk.create("orders")
    request = DeleteTopicsRequest(
        topics=(
            DeleteTopicState(name="x"),
            DeleteTopicState(topic_id=UUID(int=999)),
            DeleteTopicState(),
            DeleteTopicState(name="orders", topic_id=UUID(int=5)),
            DeleteTopicState(name="orders"),
        )
    )

    answer = desk.ask(API, request)

    assert {(one.name, one.topic_id, one.error_code) for one in answer.responses} == {
        ("x", ZERO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UUID(int=999), ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ZERO_ID, ErrorCode.INVALID_REQUEST),
        ("orders", UUID(int=5), ErrorCode.INVALID_REQUEST),
        ("orders", desk_id(answer), 0),
    }


def desk_id(answer):
    """The id of the topic that was deleted."""
    return next(one.topic_id for one in answer.responses if not one.error_code)


def test_named_twice_is_left_alone(desk):
    """Is a topic that is named twice, once by name and once by id, kept?"""
    topic_id = desk.create("orders").topic_id
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"), DeleteTopicState(topic_id=topic_id)))

    (result,) = desk.ask(API, request).responses

    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert list(desk.broker.metadata.topics) == ["orders"]


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_forbidden(open_desk, version, code):
    """Does delete.topic.enable=false keep every topic, with the error the version knows?"""
    desk = open_desk({"delete.topic.enable": "false"})
    desk.create("orders")

    (result,) = desk.ask(API, by_name("orders", version=version), version=version).responses

    assert (result.name, result.error_code) == ("orders", code)
    assert list(desk.broker.metadata.topics) == ["orders"]


def test_deletion_survives_a_restart(desk):
    """Is a deleted topic still gone after a restart?"""
    desk.create("orders")
    desk.ask(API, by_name("orders", version=6))

    desk.restart()

    assert desk.broker.metadata.topics == {}
