"""CreateTopics."""

import pytest

from headrace.broker.handlers.api19_create_topics import API
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


def topic(name, *, partitions=1, factor=1, assignments=(), **configs):
    """A wanted topic; settings are written with underscores."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in assignments),
        configs=tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()),
    )


def created(desk, *topics, **options):
    """The results by name."""
    request = CreateTopicsRequest(
        topics=topics, **{key: value for key, value in options.items() if key == "validate_only"}
    )
    answer = desk.ask(API, request, version=options.get("version"))
    return {result.name: result for result in answer.topics}


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_created_topic_takes_records_at_once(desk, version):
    """Does a topic serve, in every version, as soon as its creation is answered?"""
    result = created(desk, topic("orders", partitions=3), version=version)["orders"]

    desk.produce("orders", 5, partition=2)

    assert (result.error_code, result.error_message) == (0, None)
    assert desk.broker.partitions.require("orders", 2).log.log_end_offset == 5


def test_answer_tells_counts_id_and_settings(desk):
    """Does the answer tell what the topic came out as, with every setting and where it comes from?"""
    result = created(desk, topic("orders", partitions=-1, factor=-1, retention_ms="5000"))["orders"]

    assert (result.num_partitions, result.replication_factor) == (1, 1)
    assert result.topic_id == desk.broker.metadata.topics["orders"].topic_id != ZERO_ID
    assert result.topic_config_error_code == 0
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("5000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert len(configs) > 30


def test_counts_come_from_the_settings(open_desk):
    """Does -1 mean num.partitions?"""
    desk = open_desk({"num.partitions": "4"})

    assert created(desk, topic("orders", partitions=-1, factor=-1))["orders"].num_partitions == 4


def test_old_versions_are_not_told_the_settings(desk):
    """Does an answer before version 5 fit its version?"""
    result = created(desk, topic("orders"), version=4)["orders"]

    assert (result.configs, result.num_partitions, result.topic_id) == ((), -1, ZERO_ID)


def test_validation_creates_nothing(desk):
    """Does validate_only answer as if, and leave no topic?"""
    result = created(desk, topic("orders", partitions=2), validate_only=True)["orders"]

    assert (result.error_code, result.num_partitions) == (0, 2)
    assert desk.broker.metadata.topics == {}


def test_assignment_is_taken(desk):
    """Is a hand-made assignment to this broker taken, and one to another refused?"""
    results = created(
        desk,
        topic("mine", partitions=-1, factor=-1, assignments=[(0, (1,)), (1, (1,))]),
        topic("others", partitions=-1, factor=-1, assignments=[(0, (7,))]),
    )

    assert (results["mine"].error_code, results["mine"].num_partitions) == (0, 2)
    assert results["others"].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"no_such": "1"}, "Unknown topic config name: no.such"),
        ({"retention_ms": "soon"}, "retention.ms"),
        ({"retention_ms": None, "cleanup_policy": None}, "Null value not supported for topic configs: retention.ms,"),
    ],
)
def test_settings_that_cannot_be_are_refused(desk, configs, words):
    """Is a topic with an unknown, bad or null setting refused and not created?"""
    result = created(desk, topic("orders", **configs))["orders"]

    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert words in result.error_message
    assert desk.broker.metadata.topics == {}


def test_each_topic_stands_for_itself(desk):
    """Are good topics created beside existing, repeated, reserved and misnamed ones?"""
    desk.create("taken")

    results = created(
        desk,
        topic("taken"),
        topic("twice"),
        topic("twice"),
        topic("__cluster_metadata"),
        topic("bad/name"),
        topic("good"),
        topic("wide", factor=3),
    )

    assert {name: result.error_code for name, result in results.items()} == {
        "taken": ErrorCode.TOPIC_ALREADY_EXISTS,
        "twice": ErrorCode.INVALID_REQUEST,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
        "bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "good": 0,
        "wide": ErrorCode.INVALID_REPLICATION_FACTOR,
    }
    assert results["taken"].error_message == "Topic 'taken' already exists."
    assert set(desk.broker.metadata.topics) == {"taken", "good"}


@pytest.mark.parametrize(
    "topics", [[topic("big", partitions=10_001)], [topic(f"t{number}") for number in range(10_001)]]
)
def test_too_much_at_once_is_refused_whole(desk, topics):
    """Does a request for more partitions than allowed create none, and say so for each?"""
    results = created(desk, *topics)

    assert {result.error_code for result in results.values()} == {ErrorCode.POLICY_VIOLATION}
    assert len(results) == len(topics)
    assert desk.broker.metadata.topics == {}


def test_topics_survive_a_restart(desk):
    """Is a created topic, with its settings and partitions, there after a restart?"""
    desk.create("orders", partitions=2, retention_ms="5000")

    desk.restart()

    assert len(desk.broker.metadata.topics["orders"].partitions) == 2
    assert desk.broker.partitions.require("orders", 1).config.retention_ms == 5000


def test_failed_disk_is_told(desk):
    """Is a creation that cannot be written down answered with KAFKA_STORAGE_ERROR?"""
    desk.files.fail_next("fsync", path_contains="__cluster_metadata")

    assert created(desk, topic("orders"))["orders"].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.broker.metadata.topics == {}


def test_log_that_cannot_be_made_is_told(desk):
    """Is a topic whose log could not be made told as KAFKA_STORAGE_ERROR, and served after a restart?"""
    desk.files.fail_next("create", path_contains="orders-1")

    result = created(desk, topic("orders", partitions=2))["orders"]
    desk.restart()
    desk.produce("orders", 3, partition=1)

    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.broker.partitions.require("orders", 1).log.log_end_offset == 3
