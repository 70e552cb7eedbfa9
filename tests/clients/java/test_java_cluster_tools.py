"""Apache Kafka's own tools for clusters against two brokers and three controllers of ours."""

import json

import pytest

from cluster_shell import BrokerGroup
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

CREATE_TOPICS = 19
TOOLS = "org.apache.kafka.tools."


@pytest.fixture(scope="module")
def nodes():
    """Two brokers and three controllers, with a topic on both brokers."""
    with BrokerGroup(2, controllers=3) as nodes:
        topic = CreatableTopic(name="orders", num_partitions=2, replication_factor=2)
        nodes.call(1, lambda broker: broker.control.ask(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,))))
        nodes.until(2, lambda metadata: "orders" in metadata.topics)
        yield nodes


def test_metadata_quorum(java, nodes):
    """Do Kafka's tools hear from a broker and from a controller who leads, who votes and who observes?"""
    status = java.run(f"{TOOLS}MetadataQuorumCommand", "--bootstrap-server", nodes.bootstrap, "describe", "--status")
    rows = java.run(
        f"{TOOLS}MetadataQuorumCommand",
        *("--bootstrap-controller", nodes.bootstrap_controllers, "describe", "--replication"),
    )

    assert status.code == 0, status.err
    assert f"LeaderId:               {nodes.controller}" in status.lines()
    assert rows.code == 0, rows.err
    kinds = {line.split()[0]: line.split()[-1] for line in rows.lines()[1:]}
    assert kinds.pop(str(nodes.controller)) == "Leader"
    assert sorted(kinds.values()) == ["Follower", "Follower", "Observer", "Observer"]


def test_features(java, nodes):
    """Can Kafka's tool change a level by way of a controller, and see it by way of a broker?"""
    changed = java.run(
        f"{TOOLS}FeatureCommand",
        *("--bootstrap-controller", nodes.bootstrap_controllers, "downgrade", "--feature", "streams.version=0"),
    )
    assert changed.code == 0, changed.err
    nodes.until(1, lambda metadata: "streams.version" not in metadata.features)
    shown = java.run(f"{TOOLS}FeatureCommand", "--bootstrap-server", nodes.address(1), "describe")

    (line,) = (line for line in shown.lines() if "streams.version" in line)
    assert "FinalizedVersionLevel: 0" in line


def test_reassignment(java, nodes, tmp_path):
    """Does Kafka's tool move a partition, and see that it is done?"""
    plan = tmp_path / "plan.json"
    moved = {"topic": "orders", "partition": 0, "replicas": [2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    command = (f"{TOOLS}reassign.ReassignPartitionsCommand", "--bootstrap-server", nodes.bootstrap)

    started = java.run(*command, "--reassignment-json-file", plan, "--execute")
    for node in (nodes.controller, 1, 2):  # the tool may ask any of them
        nodes.until(node, lambda metadata: metadata.topics["orders"].partitions[0].replicas == (2,))
    verified = java.run(*command, "--reassignment-json-file", plan, "--verify")

    assert "Successfully started partition reassignment for orders-0" in started.lines()
    assert "Reassignment of partition orders-0 is completed." in verified.lines()


def test_cluster(java, nodes):
    """Does Kafka's tool list the controllers, and hear that a broker is not registered?"""
    listed = java.run(f"{TOOLS}ClusterTool", "list-endpoints", "--bootstrap-controller", nodes.bootstrap_controllers)
    refused = java.run(f"{TOOLS}ClusterTool", "unregister", "--id", "9", "--bootstrap-server", nodes.bootstrap)

    assert [line.split()[0] for line in listed.lines()[1:]] == ["101", "102", "103"]
    assert "Broker ID 9 is not currently registered" in refused.out + refused.err
