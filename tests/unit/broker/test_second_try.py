"""Requests that were carried out, though the controller was lost before it said so, and are therefore tried again."""

from types import SimpleNamespace

import pytest

from headrace.broker.api import Call
from headrace.broker.controller import NotController
from headrace.broker.forwarding import Forwarding
from headrace.broker.handlers import api19_create_topics, api20_delete_topics, api37_create_partitions
from headrace.model.errors import ErrorCode
from headrace.wire.codec import decode_response
from headrace.wire.header import RequestHeader, parse_response_header
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


@pytest.fixture(autouse=True)
def _no_duties(desk):
    """A controller that decides nothing by itself: on a slow machine that would be taken for a try."""
    desk.broker.controller.duties.stop()


@pytest.fixture
def lost(desk, monkeypatch):
    """Has the controller lost after its next decision."""
    run, tries = desk.broker.controller.run, []

    async def forgetful(command):
        tries.append(command)
        reply = await run(command)
        if len(tries) == 1:
            raise NotController("lost")
        return reply

    def arm():
        monkeypatch.setattr(desk.broker.controller, "run", forgetful)

    yield arm
    assert len(tries) == 2


def answered(desk, api, message):
    """What a broker answers a client."""
    header = RequestHeader(api.key, api.high, 9, "client", 0)
    call = Call(desk.broker, SimpleNamespace(listener_name="PLAINTEXT", peer=("127.0.0.1", 5)), header)
    frame = memoryview(b"".join(desk.run(Forwarding(desk.broker).answer(call, api, message, b""))))[4:]
    _, body = parse_response_header(api.key, api.high, frame)
    return decode_response(api.key, api.high, frame, body)


def creation(**changes):
    """A request for one topic."""
    return CreateTopicsRequest(
        topics=(CreatableTopic(**{"name": "t", "num_partitions": 2, "replication_factor": 1} | changes),)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_partitions": -1, "replication_factor": -1},
        {"configs": (CreatableTopicConfig(name="retention.ms", value="5"),)},
        {
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": (CreatableReplicaAssignment(partition_index=0, broker_ids=(1,)),),
        },
    ],
    ids=["counts", "defaults", "settings", "places"],
)
def test_created_by_the_first_try(desk, lost, changes):
    """Is a topic told as created, with all that is told of it, which the first try made?"""
    lost()
    (told,) = answered(desk, api19_create_topics.API, creation(**changes)).topics

    made = desk.broker.metadata.topics["t"]
    assert (told.error_code, told.topic_id, told.num_partitions) == (0, made.topic_id, len(made.partitions))
    assert told.replication_factor == 1
    shown = {one.name: one.value for one in told.configs}
    assert shown["retention.ms"] == ("5" if "configs" in changes else "604800000")


def test_a_topic_that_was_there(desk, lost):
    """Does a client hear that a topic was there before it asked, also at the second try?"""
    desk.create("t", partitions=2)
    lost()
    (told,) = answered(desk, api19_create_topics.API, creation()).topics

    assert told.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    "changes",
    [
        {"num_partitions": 3},
        {"replication_factor": 2},
        {"configs": (CreatableTopicConfig(name="retention.ms", value="5"),)},
        {"assignments": (CreatableReplicaAssignment(partition_index=0, broker_ids=(2,)),)},
    ],
    ids=["count", "copies", "settings", "places"],
)
def test_a_topic_of_somebody_else(desk, monkeypatch, changes):
    """Does a client hear that a topic is there which is not the one it asked for, made while its own try was lost?"""
    run, tries = desk.broker.controller.run, [None]

    async def overtaken(command):
        if tries:
            tries.pop()
            monkeypatch.setattr(desk.broker.controller, "run", run)
            await api19_create_topics.handle(SimpleNamespace(broker=desk.broker, version=7), creation())
            raise NotController("lost")
        return await run(command)

    monkeypatch.setattr(desk.broker.controller, "run", overtaken)
    (told,) = answered(desk, api19_create_topics.API, creation(**changes)).topics

    assert told.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_deleted_by_the_first_try(desk, lost):
    """Are topics told as deleted that the first try deleted, and those as unknown that never were?"""
    for name in ("by-name", "by-id"):
        desk.create(name)
    ids = {name: desk.broker.metadata.topics[name].topic_id for name in ("by-name", "by-id")}
    lost()
    asked = (
        DeleteTopicState(name="by-name"),
        DeleteTopicState(name=None, topic_id=ids["by-id"]),
        DeleteTopicState(name="never"),
    )
    told = answered(desk, api20_delete_topics.API, DeleteTopicsRequest(topics=asked)).responses

    assert {one.name: one.error_code for one in told} == {
        "by-name": 0,
        "by-id": 0,
        "never": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert {one.topic_id for one in told if not one.error_code} == set(ids.values())


def test_grown_by_the_first_try(desk, lost):
    """Is a topic told as grown that the first try gave its size, and refused what had that size before?"""
    desk.create("small", partitions=1)
    desk.create("large", partitions=3)
    lost()
    topics = tuple(CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("small", "large"))
    told = answered(desk, api37_create_partitions.API, CreatePartitionsRequest(topics=topics)).results

    assert {one.name: one.error_code for one in told} == {"small": 0, "large": ErrorCode.INVALID_PARTITIONS}
    assert len(desk.broker.metadata.topics["small"].partitions) == 3
