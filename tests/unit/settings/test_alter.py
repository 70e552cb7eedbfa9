"""What the requests that change settings do; the refusals are those of a live Apache Kafka 4.3.1."""

from collections.abc import Callable

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.alter import Change, Operation, alter_broker, alter_topic
from headrace.settings.broker import BrokerConfig

Node = Callable[..., BrokerConfig]

SET, DELETE, APPEND, SUBTRACT = Operation


@pytest.mark.parametrize(
    ("overrides", "change", "expected"),
    [
        ({}, Change("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, Change("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5", "segment.ms": "7"}, Change("retention.ms", DELETE, None), {"segment.ms": "7"}),
        ({}, Change("retention.ms", DELETE, "ignored"), {}),
        ({}, Change("nope", DELETE, None), {}),
        ({}, Change("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact"}, Change("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
        ({}, Change("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
        (
            {"cleanup.policy": "compact,delete"},
            Change("cleanup.policy", SUBTRACT, "delete"),
            {"cleanup.policy": "compact"},
        ),
        ({"cleanup.policy": "compact"}, Change("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": "compact"}),
        ({"cleanup.policy": ""}, Change("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
    ],
)
def test_one_operation_on_a_topic(
    node: Node, overrides: dict[str, str], change: Change, expected: dict[str, str]
) -> None:
    """Does each operation do what KIP-339 says, and leave the rest and its input alone?"""
    before = dict(overrides)

    assert alter_topic(overrides, [change], node()) == expected
    assert overrides == before


def test_append_goes_on_what_is_in_force(node: Node) -> None:
    """Does appending to a list nobody set on the topic start from the broker's value?"""
    broker = node(settings={"log.cleanup.policy": "compact"})

    assert alter_topic({}, [Change("cleanup.policy", APPEND, "delete")], broker) == {"cleanup.policy": "compact,delete"}


def test_replacing_everything_is_setting_on_nothing(node: Node) -> None:
    """Does the legacy request, which names all settings anew, come out as just those?"""
    assert alter_topic({}, [Change("segment.ms", SET, "7"), Change("retention.ms", SET, "5")], node()) == {
        "segment.ms": "7",
        "retention.ms": "5",
    }


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            [Change("retention.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [Change("nope", SUBTRACT, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't SUBTRACT to key nope because its type is not LIST.",
        ),
        ([Change("nope", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            [Change("cleanup.policy", SET, "foo")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            [Change("segment.ms", SET, "1"), Change("segment.ms", DELETE, None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        ([Change("segment.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : segment.ms"),
        ([Change("segment.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            [Change("leader.replication.throttled.replicas", SET, "0:1," * 10_000)],
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
    ],
)
def test_a_change_of_a_topic_that_cannot_be(node: Node, changes: list[Change], code: ErrorCode, message: str) -> None:
    """Is a wrong request answered as Kafka answers it?"""
    with pytest.raises(KafkaError) as caught:
        alter_topic({}, changes, node())

    assert caught.value.code is code
    assert caught.value.message == message


def test_a_good_change_beside_a_bad_one_does_not_count(node: Node) -> None:
    """Is a request taken whole or not at all?"""
    overrides = {"segment.ms": "7"}

    with pytest.raises(KafkaError):
        alter_topic(overrides, [Change("segment.ms", SET, "8"), Change("retention.ms", SET, "x")], node())
    assert overrides == {"segment.ms": "7"}


@pytest.mark.parametrize("cluster_default", [False, True])
def test_broker_settings_change(node: Node, cluster_default: bool) -> None:
    """Can a dynamic setting be set and taken back, for one broker and for all?"""
    changed = alter_broker({}, [Change("log.retention.ms", SET, "9000")], node(), cluster_default=cluster_default)
    back = alter_broker(changed, [Change("log.retention.ms", DELETE, None)], node(), cluster_default=cluster_default)

    assert changed == {"log.retention.ms": "9000"}
    assert back == {}


def test_append_to_a_broker_list_goes_on_what_is_in_force(node: Node) -> None:
    """Does appending to a broker's list start from its present value?"""
    assert alter_broker({}, [Change("log.cleanup.policy", APPEND, "compact")], node()) == {
        "log.cleanup.policy": "delete,compact"
    }


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            Change("num.partitions", SET, "3"),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            Change("log.retention.ms", SET, "abc"),
            ErrorCode.INVALID_REQUEST,
            "Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            Change("log.segment.bytes", APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.segment.bytes",
        ),
        (
            Change("log.segment.bytes", SUBTRACT, "1"),
            ErrorCode.INVALID_CONFIG,
            "Config value subtract is not allowed for config key: log.segment.bytes",
        ),
        (Change("nope", APPEND, "1"), ErrorCode.INVALID_CONFIG, "Unknown config name: nope"),
        (Change("nopenopenope", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown broker config name: nopenopenope"),
    ],
)
def test_a_change_of_a_broker_that_cannot_be(node: Node, change: Change, code: ErrorCode, message: str) -> None:
    """Is a wrong change of a broker answered as Kafka answers it, and an unknown name refused?"""
    with pytest.raises(KafkaError) as caught:
        alter_broker({}, [change], node())

    assert caught.value.code is code
    assert caught.value.message == message
