"""Several nodes as one cluster: who decides, who serves, and what becomes of both when nodes stop, die and return."""

import asyncio
import time

import pytest

from cluster_shell import PATIENCE_S, BrokerGroup
from headrace.broker.membership import NotAdmitted
from headrace.model.errors import ErrorCode, StorageFault
from headrace.net.link import Link
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

CREATE_TOPICS, METADATA, DESCRIBE_QUORUM, DESCRIBE_CLUSTER, REMOVE_RAFT_VOTER = 19, 3, 55, 60, 81
HEARTBEAT = 63


def asked(address, api_key, version, request):
    """What a node answers a client of its own."""

    async def ask():
        host, port = address.split(":")
        link = Link(host, int(port), client_id="test")
        try:
            return await link.ask(api_key, version, request, timeout_s=30)
        finally:
            link.close()

    return asyncio.run(ask())


def create(group, node, name, *, partitions=3, factor=3, again=frozenset()):
    """Create a topic by way of one broker; it is asked again where it answers with one of these errors."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    end, there = time.monotonic() + PATIENCE_S, {0}
    while True:
        (result,) = asked(group.address(node), CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,))).topics
        if result.error_code not in again or time.monotonic() > end:
            break
        there = {0, ErrorCode.TOPIC_ALREADY_EXISTS}
    assert result.error_code in there, result.error_message


def fenced(metadata):
    """The brokers that do not serve."""
    return {node for node, one in metadata.brokers.items() if one.fenced}


def other_than(group, *nodes):
    """A running broker that is none of these."""
    return next(node for node in group.brokers if node < 100 and node not in nodes)


def voters(group):
    """Who votes, by the word of a broker."""
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=(RequestPartitionData(partition_index=0),))
    answer = asked(group.address(1), DESCRIBE_QUORUM, 2, DescribeQuorumRequest(topics=(topic,)))
    return {one.replica_id for one in answer.topics[0].partitions[0].current_voters}


@pytest.fixture
def group():
    """Three nodes that are brokers and controllers."""
    with BrokerGroup(3) as group:
        yield group


def test_every_broker_creates_topics(group):
    """Is a topic created whichever broker is asked, and known to all afterwards?"""
    for node in group.brokers:
        create(group, node, f"by-{node}")

    for node in group.brokers:
        group.until(node, lambda metadata: {"by-1", "by-2", "by-3"} <= metadata.topics.keys())


def test_every_broker_tells_of_all(group):
    """Does a client hear of all brokers from whichever it asks, and that this one takes what a controller decides?"""
    for node in group.brokers:  # A broker is started before all others know it, and a busy one may be missed.
        group.until(node, lambda metadata: len(metadata.brokers) == 3 and not fenced(metadata))
    answers = {node: asked(group.address(node), METADATA, 12, MetadataRequest(topics=())) for node in group.brokers}

    for node, answer in answers.items():
        assert answer.controller_id == node
        assert [(f"{one.host}:{one.port}", one.node_id) for one in answer.brokers] == [
            (group.address(node), node) for node in (1, 2, 3)
        ]
        assert answer.cluster_id == group.cluster_id


def test_the_controller_dies(group):
    """Does another node decide when the active controller is killed, and is the dead broker fenced?"""
    dead = group.controller
    group.kill(dead)

    survivor = other_than(group, dead)
    create(group, survivor, "after", factor=2)

    assert group.controller != dead
    group.until(group.controller, lambda metadata: fenced(metadata) == {dead})
    group.until(survivor, lambda metadata: fenced(metadata) == {dead})
    answer = asked(group.address(survivor), METADATA, 12, MetadataRequest(topics=()))
    assert dead not in {one.node_id for one in answer.brokers}


def test_a_death_is_noticed_at_once():
    """Is a killed node fenced, and an active controller replaced, though no timeout would run out for minutes?"""
    patient = {
        "broker.session.timeout.ms": "600000",
        "controller.quorum.fetch.timeout.ms": "600000",
        "controller.quorum.request.timeout.ms": "600000",
    }
    with BrokerGroup(3, settings=patient) as group:
        create(group, 1, "led", partitions=6)
        follower = other_than(group, group.controller)
        group.kill(follower)
        group.until(group.controller, lambda metadata: fenced(metadata) == {follower})
        group.start(follower)

        controller = group.controller
        group.kill(controller)
        survivor = group.controller
        assert survivor != controller
        group.until(survivor, lambda metadata: fenced(metadata) == {controller})
        leaders = group.ask(survivor, lambda broker: {one.leader for one in broker.metadata.topics["led"].partitions})
        assert controller not in leaders


def test_a_dead_broker_returns(group):
    """Does a broker that was killed come back under its id, with a new epoch, and serve again?"""
    node = other_than(group, group.controller)
    epoch = group.ask(node, lambda broker: broker.broker_epoch)
    group.kill(node)
    group.start(node)

    group.until(group.controller, lambda metadata: fenced(metadata) == set())
    assert group.ask(node, lambda broker: broker.broker_epoch) > epoch


def test_leaders_move_before_a_broker_stops(group):
    """Do others lead what a broker led, before it stops cleanly (controlled shutdown)?"""
    create(group, 1, "moving", partitions=6)
    node = other_than(group, group.controller)
    group.stop(node)

    def leaders(metadata):
        return {state.leader for state in metadata.topics["moving"].partitions}

    survivor = group.controller
    assert group.ask(survivor, lambda broker: broker.metadata.brokers[node].fenced)
    assert node not in group.ask(survivor, lambda broker: leaders(broker.metadata))
    assert -1 not in group.ask(survivor, lambda broker: leaders(broker.metadata))


def test_a_clean_stop_is_known_by_its_epoch(group):
    """Does a broker that stopped cleanly say so with its old epoch when it registers again (KIP-966)?"""
    node = other_than(group, group.controller)
    epoch = group.ask(node, lambda broker: broker.broker_epoch)
    group.restart(node)

    stopped = group.ask(node, lambda broker: {log_dir.stopped_epoch for log_dir in broker.store.log_dirs})
    assert stopped == {epoch}


def test_the_controller_stops():
    """Does another node take over when the active controller stops cleanly, and let it in again at once?"""
    with BrokerGroup(3, settings={"broker.session.timeout.ms": "600000"}) as group:
        before = group.controller
        group.stop(before)

        create(group, other_than(group, before), "after", factor=2)
        assert group.controller != before
        group.start(before)
        assert not group.ask(before, lambda broker: broker.metadata.brokers[before].fenced)


def test_no_majority_no_decision():
    """Is a request refused in time where no majority of controllers is left, and served when it is back?"""
    with BrokerGroup(3, settings={"request.timeout.ms": "1000"}) as group:
        survivor = group.controller
        others = [node for node in group.brokers if node != survivor]
        for node in others:
            group.kill(node)

        topic = CreatableTopic(name="nobody", num_partitions=1, replication_factor=1)
        (result,) = asked(group.address(survivor), CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,))).topics
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT

        group.start(*others)
        # A busy machine may need more than that second for it, and each of the three may be missed for a moment.
        create(group, survivor, "somebody", again={ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_REPLICATION_FACTOR})


def test_an_id_in_use():
    """Is a second broker with an id that is in use refused with a sentence, when its time is over?"""
    hasty = {"initial.broker.registration.timeout.ms": "2000"}
    refused = pytest.raises(NotAdmitted, match=r"Another broker with node\.id 1 is running in this cluster")
    with BrokerGroup(2, controllers=1) as group, refused:
        group.start_twin(1, hasty)


def test_controllers_of_their_own():
    """Do brokers that do not vote serve, with controllers that are nothing else?"""
    with BrokerGroup(2, controllers=3) as group:
        create(group, 1, "t", factor=2)
        group.until(2, lambda metadata: "t" in metadata.topics)

        controllers = asked(
            group.bootstrap_controllers.split(",")[0], DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=2)
        )
        assert [one.broker_id for one in controllers.brokers] == [101, 102, 103]
        assert controllers.controller_id == group.controller
        told = asked(group.address(2), METADATA, 12, MetadataRequest(topics=()))
        assert [one.node_id for one in told.brokers] == [1, 2]
        assert told.controller_id in {1, 2}


def test_a_controller_that_does_not_decide():
    """Is one who asks a controller that is not the active one told so, so that it looks for the one that is?"""
    with BrokerGroup(1, controllers=3) as group:
        addresses = dict(zip((101, 102, 103), group.bootstrap_controllers.split(","), strict=True))
        standby = next(node for node in addresses if node != group.controller)
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)

        (result,) = asked(addresses[standby], CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,))).topics
        assert (result.name, result.error_code) == ("t", ErrorCode.NOT_CONTROLLER)
        beat = asked(addresses[standby], HEARTBEAT, 2, BrokerHeartbeatRequest(broker_id=1))
        assert beat.error_code == ErrorCode.NOT_CONTROLLER
        (result,) = asked(addresses[group.controller], CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,))).topics
        assert result.error_code == 0


def test_a_controller_of_its_own_dies():
    """Do brokers find the next active controller, and create topics by it?"""
    with BrokerGroup(2, controllers=3) as group:
        dead = group.controller
        group.kill(dead)

        create(group, 2, "after", factor=2)
        assert group.controller not in {dead, 1, 2}


def test_voters_in_the_log():
    """Does a quorum whose log names its voters (KIP-853) work, survive its controller, and lose one when asked to?"""
    with BrokerGroup(1, controllers=3, dynamic=True, settings={"min.insync.replicas": "1"}) as group:
        create(group, 1, "before", factor=1)
        dead = group.controller
        group.kill(dead)
        create(group, 1, "between", factor=1)
        group.start(dead)
        create(group, 1, "after", factor=1)

        group.until(dead, lambda metadata: {"before", "between", "after"} <= metadata.topics.keys())
        leaver = next(node for node in group.brokers if node > 100 and node != group.controller)
        directory_id = group.ask(leaver, lambda broker: broker.quorum.settings.key.directory_id)
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=leaver, voter_directory_id=directory_id)
        removed = asked(group.address(1), REMOVE_RAFT_VOTER, 0, request)
        assert (removed.error_code, removed.error_message) == (0, None)
        assert voters(group) == {101, 102, 103} - {leaver}


def test_a_node_that_loses_its_metadata_log(group):
    """Does a node whose metadata log failed want to stop, and do the others go on without it?"""
    node = other_than(group, group.controller)
    group.ask(node, lambda broker: broker.quorum._break(StorageFault("the disk is gone")))

    assert group.ask(node, lambda broker: broker.broken.is_set())
    group.kill(node)
    group.until(group.controller, lambda metadata: fenced(metadata) == {node})
    create(group, other_than(group, node), "after", factor=2)
