"""AlterConfigs."""

import pytest

from headrace.broker.handlers.api33_alter_configs import API
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC
from headrace.model.errors import ErrorCode
from headrace.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

TOPIC, BROKER, GROUP = 2, 4, 32


def alter(desk, *resources, version=None, validate_only=False):
    """Error codes and messages, in the order of the request."""
    request = AlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(AlterableConfig(name=key, value=value) for key, value in configs),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )
    answer = desk.ask(API, request, version=version)
    assert [(one.resource_type, one.resource_name) for one in answer.responses] == [one[:2] for one in resources]
    return [(one.error_code, one.error_message) for one in answer.responses]


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_what_is_sent_is_all_there_is(desk, version):
    """Does a setting that is not sent go back to its default, in every version?"""
    desk.create("orders", retention_ms="5000", segment_ms="6000")

    assert alter(desk, (TOPIC, "orders", [("retention.ms", "7000")]), version=version) == [(0, None)]

    config = desk.broker.partitions.require("orders", 0).config
    assert config.retention_ms == 7000
    assert config.segment_ms != 6000
    assert desk.broker.metadata.configs(RESOURCE_TOPIC, "orders") == {"retention.ms": "7000"}


def test_brokers_settings_are_replaced_too(desk):
    """Are both layers of dynamic broker settings replaced whole, and in force at once?"""
    desk.create("orders")
    alter(desk, (BROKER, "1", [("message.max.bytes", "2000000")]), (BROKER, "", [("log.retention.ms", "9000")]))

    assert desk.broker.partitions.require("orders", 0).config.max_message_bytes == 2_000_000
    assert desk.broker.partitions.require("orders", 0).config.retention_ms == 9000

    assert alter(desk, (BROKER, "1", [("log.segment.bytes", "2000000")])) == [(0, None)]

    assert desk.broker.metadata.configs(RESOURCE_BROKER, "1") == {"log.segment.bytes": "2000000"}
    assert desk.broker.partitions.require("orders", 0).config.max_message_bytes != 2_000_000


def test_groups_settings_are_replaced_too(desk):
    """Is what a group is told all it says for itself?"""
    alter(desk, (GROUP, "g", [("share.delivery.count.limit", "7"), ("share.session.timeout.ms", "50000")]))

    assert alter(desk, (GROUP, "g", [("share.delivery.count.limit", "8")])) == [(0, None)]

    assert desk.broker.metadata.configs(GROUP, "g") == {"share.delivery.count.limit": "8"}


def test_null_is_no_value(desk):
    """Is a null value refused, leaving what was set?"""
    desk.create("orders", retention_ms="5000")

    ((code, message),) = alter(desk, (TOPIC, "orders", [("retention.ms", None)]))

    assert (code, message) == (ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms")
    assert desk.broker.metadata.configs(RESOURCE_TOPIC, "orders") == {"retention.ms": "5000"}


def test_logger_levels_are_not_settings_here(desk):
    """Is a resource type this API never had refused?"""
    ((code, _),) = alter(desk, (8, "1", [("root", "DEBUG")]))

    assert code == ErrorCode.INVALID_REQUEST


def test_validation_changes_nothing(desk):
    """Does validate_only answer as if, and leave the settings?"""
    desk.create("orders", retention_ms="5000")

    assert alter(desk, (TOPIC, "orders", [("retention.ms", "7000")]), validate_only=True) == [(0, None)]

    assert desk.broker.partitions.require("orders", 0).config.retention_ms == 5000
