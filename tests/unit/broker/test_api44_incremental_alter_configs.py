"""IncrementalAlterConfigs."""

import pytest

from headrace.broker.handlers.api44_incremental_alter_configs import API
from headrace.broker.share_settings import share_limits
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC
from headrace.model.errors import ErrorCode
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(desk, *resources, version=None, validate_only=False):
    """Error codes and messages, in the order of the request."""
    request = IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )
    answer = desk.ask(API, request, version=version)
    assert [(one.resource_type, one.resource_name) for one in answer.responses] == [one[:2] for one in resources]
    return [(one.error_code, one.error_message) for one in answer.responses]


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_only_what_is_named_changes(desk, version):
    """Are settings set and deleted one by one, in every version, and in force at once?"""
    desk.create("orders", retention_ms="5000", segment_ms="6000", flush_ms="7000")

    changes = [("retention.ms", SET, "8000"), ("segment.ms", DELETE, None)]
    assert alter(desk, (TOPIC, "orders", changes), version=version) == [(0, None)]

    config = desk.broker.partitions.require("orders", 0).config
    assert (config.retention_ms, config.flush_ms) == (8000, 7000)
    assert config.segment_ms != 6000


def test_lists_gain_and_lose_words(desk):
    """Do APPEND and SUBTRACT start from the default where nothing is set?"""
    desk.create("orders")

    alter(desk, (TOPIC, "orders", [("cleanup.policy", APPEND, "compact")]))
    both = desk.broker.partitions.require("orders", 0).config
    alter(desk, (TOPIC, "orders", [("cleanup.policy", SUBTRACT, "delete")]))
    one = desk.broker.partitions.require("orders", 0).config

    assert (both.cleanup_delete, both.cleanup_compact) == (True, True)
    assert (one.cleanup_delete, one.cleanup_compact) == (False, True)


def test_brokers_change_at_once_and_over_a_restart(desk):
    """Are dynamic broker settings in force at once, the broker's own before those of all, and after a restart?"""
    desk.create("orders")

    alter(
        desk,
        (BROKER, "", [("log.retention.ms", SET, "9000"), ("message.max.bytes", SET, "3000000")]),
        (BROKER, "1", [("message.max.bytes", SET, "2000000")]),
    )
    now = desk.broker.partitions.require("orders", 0).config
    desk.restart()
    later = desk.broker.partitions.require("orders", 0).config

    assert (now.retention_ms, now.max_message_bytes) == (9000, 2_000_000)
    assert (later.retention_ms, later.max_message_bytes) == (9000, 2_000_000)


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "words"),
    [
        (TOPIC, "orders", [("no.such", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (TOPIC, "orders", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG, "retention.ms"),
        (TOPIC, "orders", [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "its type is not LIST"),
        (TOPIC, "orders", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (TOPIC, "orders", [("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            TOPIC,
            "orders",
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            ErrorCode.INVALID_REQUEST,
            "duplicate config keys",
        ),
        (
            TOPIC,
            "x",
            [("retention.ms", SET, "1")],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'x' does not exist.",
        ),
        (TOPIC, "", [], ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (TOPIC, "a/b", [], ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (BROKER, "5", [], ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 5"),
        (BROKER, "one", [], ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: one"),
        (
            BROKER,
            "1",
            [("num.partitions", SET, "3")],
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (BROKER, "1", [("no.such", SET, "3")], ErrorCode.INVALID_REQUEST, "no.such"),
        (LOGGER, "1", [("root", SET, "DEBUG")], ErrorCode.INVALID_REQUEST, "BROKER_LOGGER"),
        (METRICS, "m", [], ErrorCode.INVALID_REQUEST, "CLIENT_METRICS"),
        (GROUP, "", [], ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (GROUP, "g", [("no.such", SET, "3")], ErrorCode.INVALID_CONFIG, "Unknown group config name: no.such"),
        (
            GROUP,
            "g",
            [("share.delivery.count.limit", SET, "7"), ("share.session.timeout.ms", SET, "1")],
            ErrorCode.INVALID_CONFIG,
            "share.session.timeout.ms must be greater than or equal to group.share.min.session.timeout.ms",
        ),
        (99, "x", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
    ],
)
def test_change_that_cannot_be_is_refused(desk, kind, name, changes, code, words):
    """Is each impossible change refused with its reason, while its neighbour in the request is made?"""
    desk.create("orders", segment_ms="6000")
    desk.create("neighbour")

    refused, made = alter(desk, (kind, name, changes), (TOPIC, "neighbour", [("flush.ms", SET, "7")]))

    assert refused[0] == code
    assert words in refused[1]
    assert made == (0, None)
    assert desk.broker.metadata.configs(RESOURCE_TOPIC, "orders") == {"segment.ms": "6000"}
    assert desk.broker.metadata.configs(RESOURCE_BROKER, "1") == {}
    assert desk.broker.metadata.configs(GROUP, "g") == {}
    assert desk.broker.partitions.require("neighbour", 0).config.flush_ms == 7


def test_groups_change_at_once_and_over_a_restart(desk):
    """Is a group's own setting in force at once, and after a restart, for this group only?"""
    changes = [("share.delivery.count.limit", SET, "7"), ("consumer.session.timeout.ms", SET, "50000")]
    assert alter(desk, (GROUP, "g", changes)) == [(0, None)]
    assert share_limits(desk.broker, "g").deliveries_max == 7

    desk.restart()

    assert [share_limits(desk.broker, group).deliveries_max for group in ("g", "h")] == [7, 5]
    assert alter(desk, (GROUP, "g", [("share.delivery.count.limit", DELETE, None)])) == [(0, None)]
    assert share_limits(desk.broker, "g").deliveries_max == 5
    assert desk.broker.metadata.configs(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}


def test_resource_that_is_named_twice_is_left_alone(desk):
    """Are two changes of one resource in one request both refused?"""
    desk.create("orders")
    change = (TOPIC, "orders", [("flush.ms", SET, "7")])

    results = alter(desk, change, change)

    assert results == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert desk.broker.metadata.configs(RESOURCE_TOPIC, "orders") == {}


def test_validation_changes_nothing(desk):
    """Does validate_only answer as if, and leave the settings?"""
    desk.create("orders")

    assert alter(desk, (TOPIC, "orders", [("flush.ms", SET, "7")]), validate_only=True) == [(0, None)]

    assert desk.broker.metadata.configs(RESOURCE_TOPIC, "orders") == {}


def test_failed_disk_is_told(desk):
    """Is a change that cannot be written down answered with KAFKA_STORAGE_ERROR, and not in force?"""
    desk.create("orders")
    desk.files.fail_next("fsync", path_contains="__cluster_metadata")

    ((code, _),) = alter(desk, (TOPIC, "orders", [("flush.ms", SET, "7")]))

    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.broker.partitions.require("orders", 0).config.flush_ms != 7


def test_many_resources_are_changed_in_turns(desk):
    """Is a request for more resources than one turn takes answered in its order, with doubles seen across turns?"""
    desk.create("first")
    desk.create("last")
    change = [("retention.ms", SET, "8000")]
    strangers = [(TOPIC, f"stranger-{number}", change) for number in range(2500)]
    twice = (TOPIC, "twice", change)
    resources = [(TOPIC, "first", change), twice, *strangers, twice, (TOPIC, "last", change)]
    codes = [code for code, _ in alter(desk, *resources)]

    double, unknown = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [0, double, *[unknown] * 2500, double, 0] == codes
    for topic in ("first", "last"):
        assert desk.broker.partitions.require(topic, 0).config.retention_ms == 8000
