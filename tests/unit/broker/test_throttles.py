"""The quotas of replication follow the settings of brokers and topics."""

import pytest

from headrace.broker.handlers.api20_delete_topics import API as DELETE_TOPICS
from headrace.broker.handlers.api44_incremental_alter_configs import API as ALTER_CONFIGS
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER = 2, 4


def alter(desk, kind, name, **settings):
    """Set settings, written with underscores; None takes one back."""
    configs = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (answer,) = desk.ask(ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))).responses
    assert answer.error_code == 0, answer.error_message


@pytest.mark.parametrize("restarts", [False, True])
def test_rates_and_replicas_are_taken_over(desk, restarts):
    """Do the quotas follow what was set while the broker runs, and before it started?"""
    desk.create("orders", partitions=2)
    alter(
        desk,
        BROKER,
        "1",
        leader_replication_throttled_rate="1000",
        follower_replication_throttled_rate="2000",
        replica_alter_log_dirs_io_max_bytes_per_second="3000",
    )
    alter(
        desk,
        TOPIC,
        "orders",
        leader_replication_throttled_replicas="0:1,1:2",
        follower_replication_throttled_replicas="*",
    )
    if restarts:
        desk.restart()
    throttles = desk.broker.throttles

    assert (throttles.leader.bound, throttles.follower.bound, throttles.moves.bound) == (1000, 2000, 3000)
    assert [throttles.leader.is_throttled("orders", index) for index in (0, 1)] == [True, False]
    assert [throttles.follower.is_throttled("orders", index) for index in (0, 1)] == [True, True]


def test_throttles_are_lifted(desk):
    """Do the quotas forget what was taken back, or of a topic that is deleted?"""
    for name in ("kept", "gone"):
        desk.create(name, leader_replication_throttled_replicas="*")
        assert desk.broker.throttles.leader.is_throttled(name, 0)
    alter(desk, BROKER, "1", leader_replication_throttled_rate="1000")

    alter(desk, BROKER, "1", leader_replication_throttled_rate=None)
    alter(desk, TOPIC, "kept", leader_replication_throttled_replicas=None)
    desk.ask(DELETE_TOPICS, DeleteTopicsRequest(topics=(DeleteTopicState(name="gone"),)))

    throttles = desk.broker.throttles
    assert throttles.leader.bound == 2**63 - 1
    assert not throttles.leader.is_throttled("kept", 0)
    assert not throttles.leader.is_throttled("gone", 0)
