"""An admin client of a cluster whose active controller dies."""

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cluster_shell import BrokerGroup
from scenarios.cluster_clients import QUICK, WAIT_S


@pytest.fixture
def admin_of():
    """Opens an admin client of a group."""
    return lambda group: AdminClient({"bootstrap.servers": group.bootstrap, **QUICK})


def test_somebody_to_ask(admin_of):
    """Is a client sent to a broker that lives, from the moment the active controller is dead and before another is?"""
    never = {"controller.quorum.fetch.timeout.ms": "600000", "broker.session.timeout.ms": "600000"}
    with BrokerGroup(3, settings=never) as group:
        admin = admin_of(group)
        admin.list_topics(timeout=WAIT_S)
        dead = group.controller
        group.kill(dead)

        for _ in range(3):
            assert admin.describe_cluster().result(WAIT_S).controller.id != dead


def test_changes_while_the_controller_moves(admin_of):
    """Are topics created, grown and deleted right after the active controller died, with no error in between?"""
    with BrokerGroup(3) as group:
        admin = admin_of(group)
        for number in range(2):
            name = f"made-{number}"
            dead = group.controller
            group.kill(dead)

            admin.create_topics([NewTopic(name, 2, 2)])[name].result(WAIT_S)
            admin.create_partitions([NewPartitions(name, 3)])[name].result(WAIT_S)
            group.until(group.controller, lambda metadata, name=name: len(metadata.topics[name].partitions) == 3)
            admin.delete_topics([name])[name].result(WAIT_S)
            group.start(dead)
