"""CreatePartitions."""

import pytest

from headrace.broker.handlers.api37_create_partitions import API
from headrace.model.errors import ErrorCode
from headrace.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def more(name, count, assignments=None):
    """A topic that shall have `count` partitions."""
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=assignments and tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in assignments),
    )


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_new_partitions_take_records_at_once(desk, version):
    """Do new partitions serve, in every version, when the answer is sent, and keep the old ones their records?"""
    desk.create("orders", retention_ms="5000")
    desk.produce("orders", 4)

    (result,) = desk.ask(API, CreatePartitionsRequest(topics=(more("orders", 3),)), version=version).results
    desk.produce("orders", 5, partition=2)

    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    partitions = desk.broker.partitions.of_topic("orders")
    assert [partition.log.log_end_offset for partition in partitions] == [4, 0, 5]
    assert partitions[2].config.retention_ms == 5000


def test_each_topic_stands_for_itself(desk):
    """Do good topics grow beside those that cannot, each with its reason?"""
    for name in ("a", "b", "c", "d", "e"):
        desk.create(name, partitions=2)

    answer = desk.ask(
        API,
        CreatePartitionsRequest(
            topics=(
                more("a", 3),
                more("b", 2),
                more("c", 1),
                more("d", 3, [(9,)]),
                more("e", 3),
                more("e", 4),
                more("x", 3),
            )
        ),
    )

    assert {result.name: (result.error_code, result.error_message) for result in answer.results} == {
        "a": (0, None),
        "b": (ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        "c": (
            ErrorCode.INVALID_PARTITIONS,
            "The topic c currently has 2 partition(s); 1 would not be an increase.",
        ),
        "d": (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        "e": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        "x": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
    }
    assert {name: len(topic.partitions) for name, topic in desk.broker.metadata.topics.items()} == {
        "a": 3,
        "b": 2,
        "c": 2,
        "d": 2,
        "e": 2,
    }


def test_validation_adds_nothing(desk):
    """Does validate_only answer as if, and leave the topic as it is?"""
    desk.create("orders")

    (result,) = desk.ask(API, CreatePartitionsRequest(topics=(more("orders", 3),), validate_only=True)).results

    assert result.error_code == 0
    assert len(desk.broker.partitions.of_topic("orders")) == 1


def test_too_many_at_once_are_refused(desk):
    """Is there an end to what one request may add?"""
    desk.create("orders")

    (result,) = desk.ask(API, CreatePartitionsRequest(topics=(more("orders", 2**31 - 1),))).results

    assert result.error_code == ErrorCode.POLICY_VIOLATION
    assert len(desk.broker.partitions.of_topic("orders")) == 1
