"""What nodes ask the active controller, and tools ask of the cluster: versions, codes, and Kafka's words."""

from uuid import UUID

import pytest
from tests.unit.broker.cluster_guest import Guest
from tests.unit.broker.test_duties import place

from headrace.broker.handlers import (
    api03_metadata,
    api43_elect_leaders,
    api45_alter_partition_reassignments,
    api46_list_partition_reassignments,
    api56_alter_partition,
    api57_update_features,
    api60_describe_cluster,
    api62_broker_registration,
    api63_broker_heartbeat,
    api64_unregister_broker,
    api67_allocate_producer_ids,
    api70_controller_registration,
    api73_assign_replicas_to_dirs,
)
from headrace.model.errors import ErrorCode
from headrace.wire.messages import (
    allocate_producer_ids,
    alter_partition,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    controller_registration,
    elect_leaders,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

FENCED_BROKERS_FIRST = 2


def versions(api):
    """Every version a handler serves."""
    return range(api.low, api.high + 1)


@pytest.fixture
def guest(desk):
    """A second broker that serves, as far as anybody knows."""
    return Guest(desk).join()


# --- 62, 63, 64


@pytest.mark.parametrize("version", versions(api62_broker_registration.API))
def test_registration(desk, version):
    """Is a broker let in by every version that names its log dirs, fenced, with an epoch of its own?"""
    guest = Guest(desk)
    answer = guest.register(version=version)
    if version < 2:
        assert answer.error_code == ErrorCode.INVALID_REGISTRATION
        return

    assert (answer.error_code, answer.broker_epoch) == (0, guest.registration.broker_epoch)
    assert guest.registration.fenced
    assert guest.registration.end_points[0].host == "guest"


def test_registrations_that_cannot_be(desk, guest, caplog):
    """Is a wrong cluster, an id in use and a log dir in use refused, with Kafka's code and a sentence in the log?"""
    another = Guest(desk, node_id=3)

    assert another.register(cluster_id="another").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert guest.register(incarnation_id=UUID(int=7 << 80)).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert another.register(log_dirs=(guest.directory_id,)).error_code == ErrorCode.INVALID_REGISTRATION
    assert another.register(features=()).error_code == ErrorCode.INVALID_REGISTRATION
    assert another.registration is None
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("broker_refused")]
    assert [line.partition(" reason=")[0].split()[1::2] for line in told] == [
        ["broker=3", "error=INCONSISTENT_CLUSTER_ID"],
        ["broker=2", "error=DUPLICATE_BROKER_REGISTRATION"],
        ["broker=3", "error=INVALID_REGISTRATION"],
    ]
    assert all(line.partition(" reason=")[2] for line in told)


@pytest.mark.parametrize("version", versions(api63_broker_heartbeat.API))
def test_heartbeats(desk, version):
    """Does a broker hear whether it has caught up, is fenced, may go?"""
    guest = Guest(desk)
    guest.register()

    behind = guest.beat(current_metadata_offset=guest.epoch - 1, version=version)
    assert (behind.error_code, behind.is_caught_up, behind.is_fenced) == (0, False, True)
    ahead = guest.beat(version=version)
    assert (ahead.error_code, ahead.is_caught_up, ahead.is_fenced) == (0, True, False)
    assert guest.beat(version=version, want_shut_down=True).should_shut_down
    assert guest.registration.fenced
    assert guest.beat(version=version, broker_epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_unregistering(desk, guest):
    """Is a broker taken out, and one that is unknown refused in Kafka's words?"""
    asked = unregister_broker.UnregisterBrokerRequest(broker_id=2)

    assert desk.ask(api64_unregister_broker.API, asked).error_code == 0
    assert guest.registration is None
    again = desk.ask(api64_unregister_broker.API, asked)
    assert (again.error_code, again.error_message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 2 is not currently registered",
    )
    assert guest.beat().error_code == ErrorCode.STALE_BROKER_EPOCH


# --- who is told


def test_clients_are_told_of_brokers_that_serve(desk, guest):
    """Do Metadata and DescribeCluster name the brokers that serve, and the fenced ones only where that is asked?"""
    asked = MetadataRequest(topics=())
    assert [one.node_id for one in desk.ask(api03_metadata.API, asked).brokers] == [1, 2]
    guest.beat(want_fence=True)

    assert [one.node_id for one in desk.ask(api03_metadata.API, asked).brokers] == [1]
    told = desk.ask(api60_describe_cluster.API, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(one.broker_id, one.is_fenced) for one in told.brokers] == [(1, False), (2, True)]
    told = desk.ask(api60_describe_cluster.API, DescribeClusterRequest())
    assert [one.broker_id for one in told.brokers] == [1]


def test_replicas_that_are_offline(desk, guest):
    """Does Metadata tell which replicas cannot be read, and that a leader is missing?"""
    place(desk, "t", 2)
    guest.beat(want_fence=True)

    topic = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    (partition,) = desk.ask(api03_metadata.API, topic).topics[0].partitions

    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (partition.replica_nodes, partition.offline_replicas) == ((2,), (2,))


# --- 43, 45, 46


@pytest.mark.parametrize("version", versions(api43_elect_leaders.API))
def test_elections(desk, guest, version):
    """Is each partition answered for in every version, and is the first replica elected?"""
    place(desk, "t", 1, 2)
    asked = (
        elect_leaders.TopicPartitions(topic="t", partitions=(0, 7)),
        elect_leaders.TopicPartitions(topic="x", partitions=(0,)),
    )

    answer = desk.ask(
        api43_elect_leaders.API, elect_leaders.ElectLeadersRequest(topic_partitions=asked), version=version
    )

    codes = {
        (topic.topic, one.partition_id): (one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }
    assert codes == {
        ("t", 0): (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
        ("t", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-7"),
        ("x", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as x"),
    }


def test_elections_of_all(desk):
    """Without partitions, are those that need no election left out?"""
    desk.create("t")

    answer = desk.ask(api43_elect_leaders.API, elect_leaders.ElectLeadersRequest(topic_partitions=None))

    assert (answer.error_code, answer.replica_election_results) == (0, ())


def test_unknown_election(desk):
    """Is an election of a kind that there is not refused as a whole and at each partition?"""
    asked = (elect_leaders.TopicPartitions(topic="t", partitions=(0,)),)
    request = elect_leaders.ElectLeadersRequest(topic_partitions=asked, election_type=9)

    answer = desk.ask(api43_elect_leaders.API, request)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST


def moved(*replicas, **more):
    """A request to move the first partition of `t`."""
    partition = alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=replicas or None)
    topic = alter_partition_reassignments.ReassignableTopic(name="t", partitions=(partition,))
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=(topic,), **more)


@pytest.mark.parametrize("version", versions(api45_alter_partition_reassignments.API))
def test_reassignment(desk, guest, version):
    """Does a move begin, is it told of while it lasts, and can it be taken back?"""
    place(desk, "t", 1)
    listed = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)

    answer = desk.ask(api45_alter_partition_reassignments.API, moved(2, 1), version=version)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    (topic,) = desk.ask(api46_list_partition_reassignments.API, listed).topics
    assert (topic.name, topic.partitions[0].replicas, topic.partitions[0].adding_replicas) == ("t", (2, 1), (2,))

    desk.ask(api45_alter_partition_reassignments.API, moved(), version=version)
    assert desk.ask(api46_list_partition_reassignments.API, listed).topics == ()
    again = desk.ask(api45_alter_partition_reassignments.API, moved(), version=version).responses[0].partitions[0]
    assert (again.error_code, again.error_message) == (
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        "No partition reassignment is in progress.",
    )


def test_reassignment_that_changes_the_number(desk, guest):
    """Is a change of the replication factor refused where the caller does not want one?"""
    place(desk, "t", 1)
    request = moved(2, 1, allow_replication_factor_change=False)

    answer = desk.ask(api45_alter_partition_reassignments.API, request)

    assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert not answer.allow_replication_factor_change


# --- 56, 67, 70, 73


@pytest.mark.parametrize("version", versions(api56_alter_partition.API))
def test_in_sync_replicas(desk, guest, version):
    """Can a leader take a replica out of the ISR, and is a stale leader or broker refused?"""
    topic = place(desk, "t", 1, 2)
    epoch = desk.broker.broker_epoch

    def alter(broker_epoch=epoch, leader_epoch=topic.partitions[0].leader_epoch):
        partition = alter_partition.RequestPartitionData(
            partition_index=0,
            leader_epoch=leader_epoch,
            partition_epoch=topic.partitions[0].partition_epoch,
            new_isr=(1,),
            new_isr_with_epochs=(alter_partition.BrokerState(broker_id=1, broker_epoch=epoch),),
        )
        asked = alter_partition.RequestTopicData(topic_id=topic.topic_id, partitions=(partition,))
        request = alter_partition.AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=(asked,))
        return desk.ask(api56_alter_partition.API, request, version=version, listener="CONTROLLER")

    assert alter(broker_epoch=epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert alter(leader_epoch=9).topics[0].partitions[0].error_code == ErrorCode.NOT_CONTROLLER
    (partition,) = alter().topics[0].partitions
    assert (partition.error_code, partition.isr, partition.leader_id) == (0, (1,), 1)
    assert topic.partitions[0].isr == (1,)


def test_producer_ids(desk):
    """Does each broker get a block of its own, and one with an old epoch none?"""

    def block(epoch):
        request = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
        return desk.ask(api67_allocate_producer_ids.API, request, listener="CONTROLLER")

    first, second = block(desk.broker.broker_epoch), block(desk.broker.broker_epoch)
    assert second.producer_id_start == first.producer_id_start + first.producer_id_len
    assert block(desk.broker.broker_epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_controllers(desk):
    """Is another controller noted with where it listens?"""
    listener = controller_registration.Listener(name="CONTROLLER", host="c", port=9)
    request = controller_registration.ControllerRegistrationRequest(controller_id=5, listeners=(listener,))

    assert desk.ask(api70_controller_registration.API, request, listener="CONTROLLER").error_code == 0
    assert [one.host for one in desk.broker.metadata.controllers[5].end_points] == ["c"]
    told = desk.ask(api60_describe_cluster.API, DescribeClusterRequest(endpoint_type=2), listener="CONTROLLER")
    assert [one.broker_id for one in told.brokers] == [1, 5]


def test_directories(desk, guest):
    """Is it noted where a replica is, and refused for a broker that holds none?"""
    topic = place(desk, "t", 1)
    place(desk, "u", 2)

    def assign(directory, *names):
        topics = tuple(
            assign_replicas_to_dirs.RequestTopicData(
                topic_id=desk.broker.metadata.topics[name].topic_id,
                partitions=(assign_replicas_to_dirs.RequestPartitionData(partition_index=0),),
            )
            for name in names
        )
        asked = assign_replicas_to_dirs.RequestDirectoryData(id=directory, topics=topics)
        request = assign_replicas_to_dirs.AssignReplicasToDirsRequest(
            broker_id=1, broker_epoch=desk.broker.broker_epoch, directories=(asked,)
        )
        answer = desk.ask(api73_assign_replicas_to_dirs.API, request, listener="CONTROLLER")
        return [one.partitions[0].error_code for one in answer.directories[0].topics]

    directory = desk.broker.directory_ids[0]
    assert assign(directory, "t", "u") == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert topic.partitions[0].directories == (directory,)


# --- 57


@pytest.mark.parametrize("version", versions(api57_update_features.API))
def test_features(desk, version):
    """Is a level changed, and one that nobody supports refused in Kafka's words, all or none?"""

    def update(*levels, **more):
        keys = tuple(
            update_features.FeatureUpdateKey(
                feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != 1
            )
            for name, level, kind in levels
        )
        request = update_features.UpdateFeaturesRequest(feature_updates=keys, **more)
        return desk.ask(api57_update_features.API, request, version=version)

    assert update(("streams.version", 0, 2)).error_code == 0
    assert "streams.version" not in desk.broker.metadata.features
    refused = update(("streams.version", 1, 1), ("group.version", 7, 1))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message == (
        "The update failed for all features since the following feature had an error: Invalid update version 7 for "
        "feature group.version. Local controller 1 only supports versions 0-1"
    )
    assert "streams.version" not in desk.broker.metadata.features
    assert update(("streams.version", 1, 1)).error_code == 0


def test_features_validated(desk):
    """Does `validate_only` change nothing?"""
    key = update_features.FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
    request = update_features.UpdateFeaturesRequest(feature_updates=(key,), validate_only=True)

    assert desk.ask(api57_update_features.API, request).error_code == 0
    assert desk.broker.metadata.features["streams.version"] == 1
