"""Kafka's tools for clusters against one of three nodes, by way of a broker and by way of a controller."""

import importlib
import json
import re

import pytest

from cluster_shell import BrokerGroup
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


@pytest.fixture(scope="module")
def group():
    """Three nodes that are brokers and controllers, with a topic."""
    with BrokerGroup(3, settings={"auto.leader.rebalance.enable": "false"}) as group:
        topic = CreatableTopic(name="orders", num_partitions=3, replication_factor=3)
        group.call(1, lambda broker: broker.control.ask(19, CreateTopicsRequest(topics=(topic,))))
        yield group


@pytest.fixture
def tool(group, capsys, monkeypatch, tmp_path):
    """Runs a tool by its module's name; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))

    def run(name, *arguments, by="--bootstrap-server", address=None):
        module = importlib.import_module(f"headrace.cli.{name}")
        # The tool asks any of them, also what another one was told just now.
        group.caught_up()
        usual = group.bootstrap if by == "--bootstrap-server" else group.bootstrap_controllers
        code = module.main([*map(str, arguments), by, address or usual], module.TOOL.name)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


BOTH = pytest.mark.parametrize("by", ["--bootstrap-server", "--bootstrap-controller"])


@BOTH
def test_metadata_quorum(tool, group, by):
    """Is it told who leads the quorum and who votes?"""
    code, out, err = tool("metadata_quorum", "describe", "--status", by=by)

    assert code == 0, err
    assert f"ClusterId:              {group.cluster_id}\n" in out
    assert f"LeaderId:               {group.controller}\n" in out
    assert re.search(r"CurrentVoters:\s+\[.*1.*2.*3.*\]", out)
    code, out, err = tool("metadata_quorum", "describe", "--replication", by=by)
    assert code == 0, err
    assert len(re.findall(r"^\d+ *\t.*(?:Leader|Follower)", out, re.MULTILINE)) == 3


@pytest.mark.parametrize("what", ["--status", "--replication"])
def test_metadata_quorum_at_the_wrong_address(tool, group, what):
    """Is a broker's address given as a controller's refused, and the other way round, in Kafka's words?"""
    kind = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    wrong = {"--bootstrap-controller": group.bootstrap, "--bootstrap-server": group.bootstrap_controllers}
    told = {by: tool("metadata_quorum", "describe", what, by=by, address=at) for by, at in wrong.items()}

    assert [1, 1] == [code for code, _, _ in told.values()]
    assert ["", ""] == [out for _, out, _ in told.values()]
    assert f"MismatchedEndpointTypeException: {kind}" in told["--bootstrap-controller"][2]
    assert "UnsupportedVersionException: The node does not support METADATA" in told["--bootstrap-server"][2]


@BOTH
def test_features(tool, by):
    """Are the levels told, and can one be changed and changed back?"""
    code, out, err = tool("features", "describe", by=by)
    assert code == 0, err
    assert re.search(r"Feature: group\.version\s+.*FinalizedVersionLevel: 1", out)

    assert tool("features", "downgrade", "--feature", "streams.version=0", by=by)[0] == 0
    assert tool("features", "upgrade", "--feature", "streams.version=1", by=by)[0] == 0
    code, out, err = tool("features", "upgrade", "--feature", "group.version=7", by=by)
    assert code == 1
    assert "Invalid update version 7 for feature group.version." in out + err


@BOTH
def test_cluster(tool, group, by):
    """Are the cluster's id and its nodes told?"""
    assert tool("cluster", "cluster-id", by=by)[1] == f"Cluster ID: {group.cluster_id}\n"
    rows = tool("cluster", "list-endpoints", by=by)[1].splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]


def test_leader_election(tool, group):
    """Does a preferred election bring back leaders that were moved away?"""
    node = next(node for node in group.brokers if node != group.controller)
    group.restart(node)
    everywhere = {1, 2, 3}
    group.until(
        group.controller, lambda m: all(set(state.isr) == everywhere for state in m.topics["orders"].partitions)
    )
    code, out, err = tool("leader_election", "--election-type", "preferred", "--all-topic-partitions")

    assert code == 0, err
    assert "Successfully completed leader election (PREFERRED)" in out
    for state in group.ask(group.controller, lambda broker: broker.metadata.topics["orders"].partitions):
        assert state.leader == state.replicas[0]


def test_reassignment(tool, group, tmp_path):
    """Does a partition move to other replicas, and is that told until it is done?"""
    topic = CreatableTopic(name="moving", num_partitions=1, replication_factor=1)
    group.call(1, lambda broker: broker.control.ask(19, CreateTopicsRequest(topics=(topic,))))
    home = group.leader_of("moving", 0)
    target = home % 3 + 1
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "moving", "partition": 0, "replicas": [target]}]})
    )

    code, out, err = tool("reassign_partitions", "--reassignment-json-file", plan, "--execute")
    assert code == 0, err
    assert "Successfully started partition reassignment for moving-0" in out
    group.until(group.controller, lambda m: m.topics["moving"].partitions[0].replicas == (target,))
    code, out, err = tool("reassign_partitions", "--reassignment-json-file", plan, "--verify")
    assert code == 0, err
    assert "Reassignment of partition moving-0 is completed." in out
    assert "No partition reassignments found." in tool("reassign_partitions", "--list")[1]


def test_unregister(tool, group):
    """Is a broker that is not there refused in Kafka's words?"""
    code, _, err = tool("cluster", "unregister", "--id", 7)

    assert code == 1
    assert "BrokerIdNotRegisteredException: Broker ID 7 is not currently registered" in err
