"""An admin client of a cluster whose active controller dies."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cluster_shell import BrokerGroup
from scenarios.cluster_clients import QUICK, WAIT_S

TRIES = 4
"""One for each connection that may have been to the dead one, and a bit."""


@pytest.fixture
def admin_of():
    """Opens an admin client of a group."""
    return lambda group: AdminClient({"bootstrap.servers": group.bootstrap, **QUICK})


def answered(ask):
    """Ask until there is an answer: librdkafka does not ask again what it sent to a broker that had just died."""
    for _ in range(TRIES):
        try:
            return ask().result(WAIT_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError._TRANSPORT:
                raise
    return ask().result(WAIT_S)


def test_somebody_to_ask(admin_of):
    """Is a client sent to a broker that lives, from the moment the active controller is dead and before another is?"""
    never = {"controller.quorum.fetch.timeout.ms": "600000", "broker.session.timeout.ms": "600000"}
    with BrokerGroup(3, settings=never) as group:
        admin = admin_of(group)
        admin.list_topics(timeout=WAIT_S)
        dead = group.controller
        group.kill(dead)

        for _ in range(3):
            assert answered(admin.describe_cluster).controller.id != dead


def test_changes_while_the_controller_moves(admin_of):
    """Are topics created, grown and deleted right after the active controller died, with no error in between?"""
    with BrokerGroup(3) as group:
        admin = admin_of(group)
        for number in range(2):
            name = f"made-{number}"
            dead = group.controller
            group.kill(dead)

            answered(lambda name=name: admin.create_topics([NewTopic(name, 2, 2)])[name])
            answered(lambda name=name: admin.create_partitions([NewPartitions(name, 3)])[name])
            group.until(group.controller, lambda metadata, name=name: len(metadata.topics[name].partitions) == 3)
            answered(lambda name=name: admin.delete_topics([name])[name])
            group.start(dead)
