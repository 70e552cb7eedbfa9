"""ListConfigResources."""

import pytest

from headrace.broker.handlers.api74_list_config_resources import API
from headrace.model.errors import ErrorCode
from headrace.model.metadata_records import ConfigRecord
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def listed(desk, *kinds, version=None):
    """Type and name of each resource."""
    answer = desk.ask(API, ListConfigResourcesRequest(resource_types=kinds), version=version)
    assert answer.error_code == 0
    return [(one.resource_type, one.resource_name) for one in answer.config_resources]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((TOPIC,), [(TOPIC, "a"), (TOPIC, "b")]),
        ((BROKER,), [(BROKER, "1")]),
        ((LOGGER,), [(LOGGER, "1")]),
        ((METRICS, GROUP), []),
        ((), [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1"), (LOGGER, "1")]),
    ],
)
def test_resources_of_the_asked_types_are_listed(desk, kinds, expected):
    """Does each type list its resources, and no type all of them?"""
    desk.create("b")
    desk.create("a")

    assert listed(desk, *kinds) == expected


def test_groups_with_settings_of_their_own_are_listed(desk):
    """Is a group there once it was given a setting, and gone when it has none?"""
    for name in ("b", "a"):
        set_group(desk, name, "7")
    assert listed(desk, GROUP) == [(GROUP, "a"), (GROUP, "b")]

    set_group(desk, "a", None)

    assert listed(desk, GROUP) == [(GROUP, "b")]


def set_group(desk, name, value):
    """Give a group a setting, or take it away."""
    desk.broker.metadata.replay(
        ConfigRecord(resource_type=GROUP, resource_name=name, name="share.delivery.count.limit", value=value)
    )


def test_first_version_asks_for_client_metrics_only(desk):
    """Is version 0, which knew nothing else, answered with no resources?"""
    desk.create("a")

    assert listed(desk, version=0) == []


def test_unknown_type_is_refused(desk):
    """Is a type nobody knows told as not supported?"""
    answer = desk.ask(API, ListConfigResourcesRequest(resource_types=(TOPIC, 99)))

    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
