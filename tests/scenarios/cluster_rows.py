"""Rows for what nodes of a cluster ask each other, and tools ask of the cluster; `test_every_api.py` asks them.

A row may end with error codes that belong to its answer: much of this is refused by a node that is alone.
"""

from headrace.wire.codec import encode_request
from headrace.wire.header import request_header
from headrace.wire.messages import (
    add_raft_voter,
    allocate_producer_ids,
    alter_partition,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    describe_quorum,
    elect_leaders,
    end_quorum_epoch,
    envelope,
    fetch_snapshot,
    list_partition_reassignments,
    remove_raft_voter,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
)

NODE = 1
ANOTHER_CLUSTER = "another"
UNSUPPORTED_VERSION, ELECTION_NOT_NEEDED, BROKER_ID_NOT_REGISTERED, INCONSISTENT_CLUSTER_ID = 35, 84, 102, 104
LIST_REASSIGNMENTS = 46


def broker_epoch(world):
    return world.cluster.ask(lambda broker: broker.broker_epoch)


def error_code(answer):
    return answer.error_code


# --- by way of a broker


def elect_leaders_row(world, version):
    asked = elect_leaders.TopicPartitions(topic=world.topic, partitions=(0,))
    request = elect_leaders.ElectLeadersRequest(topic_partitions=(asked,))
    return (
        request,
        [(ELECTION_NOT_NEEDED, lambda a: a.replica_election_results[0].partition_result[0].error_code)],
        ELECTION_NOT_NEEDED,
    )


def alter_partition_reassignments_row(world, version):
    asked = alter_partition_reassignments.ReassignablePartition(partition_index=1, replicas=(NODE,))
    topic = alter_partition_reassignments.ReassignableTopic(name=world.topic, partitions=(asked,))
    request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=(topic,))
    return request, [(1, lambda a: a.responses[0].partitions[0].partition_index)]


def list_partition_reassignments_row(world, version):
    return list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None), [((), lambda a: a.topics)]


def describe_quorum_row(world, version):
    asked = describe_quorum.RequestPartitionData(partition_index=0)
    topic = describe_quorum.RequestTopicData(topic_name="__cluster_metadata", partitions=(asked,))
    request = describe_quorum.DescribeQuorumRequest(topics=(topic,))
    return request, [(NODE, lambda a: a.topics[0].partitions[0].leader_id)]


def update_features_row(world, version):
    update = update_features.FeatureUpdateKey(feature="streams.version", max_version_level=1)
    return update_features.UpdateFeaturesRequest(feature_updates=(update,)), [(None, lambda a: a.error_message)]


def unregister_broker_row(world, version):
    request = unregister_broker.UnregisterBrokerRequest(broker_id=77)
    return request, [(BROKER_ID_NOT_REGISTERED, error_code)], BROKER_ID_NOT_REGISTERED


def add_raft_voter_row(world, version):
    directory = world.cluster.ask(lambda broker: broker.directory_ids[0])
    listener = add_raft_voter.Listener(name="CONTROLLER", host="127.0.0.1", port=9)
    request = add_raft_voter.AddRaftVoterRequest(
        cluster_id=None, voter_id=2, voter_directory_id=directory, listeners=(listener,)
    )
    return request, [(UNSUPPORTED_VERSION, error_code)], UNSUPPORTED_VERSION


def remove_raft_voter_row(world, version):
    directory = world.cluster.ask(lambda broker: broker.directory_ids[0])
    request = remove_raft_voter.RemoveRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=directory)
    return request, [(UNSUPPORTED_VERSION, error_code)], UNSUPPORTED_VERSION


# --- at a controller's listener


def vote_row(world, version):
    return _of_another_cluster(vote.VoteRequest)


def begin_quorum_epoch_row(world, version):
    return _of_another_cluster(begin_quorum_epoch.BeginQuorumEpochRequest)


def end_quorum_epoch_row(world, version):
    return _of_another_cluster(end_quorum_epoch.EndQuorumEpochRequest)


def fetch_snapshot_row(world, version):
    return _of_another_cluster(fetch_snapshot.FetchSnapshotRequest)


def update_raft_voter_row(world, version):
    return _of_another_cluster(update_raft_voter.UpdateRaftVoterRequest)


def broker_registration_row(world, version):
    return _of_another_cluster(broker_registration.BrokerRegistrationRequest)


def _of_another_cluster(request):
    return request(cluster_id=ANOTHER_CLUSTER), [(INCONSISTENT_CLUSTER_ID, error_code)], INCONSISTENT_CLUSTER_ID


def broker_heartbeat_row(world, version):
    request = broker_heartbeat.BrokerHeartbeatRequest(
        broker_id=NODE, broker_epoch=broker_epoch(world), current_metadata_offset=2**40
    )
    return request, [((True, False, False), lambda a: (a.is_caught_up, a.is_fenced, a.should_shut_down))]


def controller_registration_row(world, version):
    known = world.cluster.ask(lambda broker: broker.metadata.controllers[NODE])
    request = controller_registration.ControllerRegistrationRequest(
        controller_id=NODE,
        incarnation_id=known.incarnation_id,
        listeners=tuple(
            controller_registration.Listener(name=one.name, host=one.host, port=one.port) for one in known.end_points
        ),
        features=tuple(
            controller_registration.Feature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in known.features
        ),
    )
    return request, [(None, lambda a: a.error_message)]


def allocate_producer_ids_row(world, version):
    request = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=NODE, broker_epoch=broker_epoch(world))
    return request, [(1000, lambda a: a.producer_id_len)]


def alter_partition_row(world, version):
    state = world.cluster.ask(lambda broker: broker.metadata.topics[world.topic].partitions[1])
    epoch = broker_epoch(world)
    asked = alter_partition.RequestPartitionData(
        partition_index=1,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr=(NODE,),
        new_isr_with_epochs=(alter_partition.BrokerState(broker_id=NODE, broker_epoch=epoch),),
    )
    topic = alter_partition.RequestTopicData(topic_id=world.topic_id, partitions=(asked,))
    request = alter_partition.AlterPartitionRequest(broker_id=NODE, broker_epoch=epoch, topics=(topic,))
    return request, [((NODE,), lambda a: a.topics[0].partitions[0].isr)]


def assign_replicas_to_dirs_row(world, version):
    asked = assign_replicas_to_dirs.RequestPartitionData(partition_index=1)
    topic = assign_replicas_to_dirs.RequestTopicData(topic_id=world.topic_id, partitions=(asked,))
    directory = assign_replicas_to_dirs.RequestDirectoryData(
        id=world.cluster.ask(lambda broker: broker.directory_ids[0]), topics=(topic,)
    )
    request = assign_replicas_to_dirs.AssignReplicasToDirsRequest(
        broker_id=NODE, broker_epoch=broker_epoch(world), directories=(directory,)
    )
    return request, [(1, lambda a: a.directories[0].topics[0].partitions[0].partition_index)]


def envelope_row(world, version):
    inside = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)
    data = request_header(LIST_REASSIGNMENTS, 0, 5, "client") + encode_request(LIST_REASSIGNMENTS, 0, inside)
    request = envelope.EnvelopeRequest(request_data=data, request_principal=None, client_host_address=bytes(4))
    return request, [(b"\0\0\0\5", lambda a: bytes(a.response_data[:4]))]


ROWS = {name: row for name, row in globals().items() if name.endswith("_row")}
