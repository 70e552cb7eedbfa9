"""The rows of test_every_api.py for what coordinators serve: groups of every kind, offsets, transactions, share state.

A row's group and its transactional id are called like its topic, which nobody else uses.
"""

from coordinator_loading import until_loaded
from headrace.model.errors import ErrorCode
from headrace.model.ids import encode_uuid
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    describe_transactions,
    end_txn,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

FOR_GROUP, FOR_TRANSACTION, FOR_SHARE = 0, 1, 2
GROUP_CONFIG = 32
INSTANCE = "instance"
METADATA, ASSIGNMENT = b"what I can do", b"what I have to do"
ACCEPT, RENEW = 1, 4
ACKNOWLEDGED = 2
CONSUMER_PROTOCOL = 1


# --- offsets


def find(world, kind, key):
    """Have a coordinator: its topic is made when it is first looked for."""
    request = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    (found,) = world.client.ask("FindCoordinator", 6, request).coordinators
    assert found.error_code == 0
    until_loaded(world.cluster, kind, key)


def commit_request(world, version, group):
    done = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=2, committed_leader_epoch=0, committed_metadata="note"
    )
    named = {"topic_id": world.topic_id} if version >= 10 else {"name": world.topic}
    topic = offset_commit.OffsetCommitRequestTopic(**named, partitions=(done,))
    return offset_commit.OffsetCommitRequest(group_id=group, topics=(topic,))


def commit(world, group=None):
    """Have a group that has read two records and has no members."""
    group = group or world.topic
    find(world, FOR_GROUP, group)
    answer = world.client.ask("OffsetCommit", 9, commit_request(world, 9, group))
    assert answer.topics[0].partitions[0].error_code == 0


def committed(world, *, require_stable=False):
    """What the row's group has read of the first partition: offset, leader epoch, note and error code."""
    topic = offset_fetch.OffsetFetchRequestTopic(name=world.topic, partition_indexes=(0,))
    request = offset_fetch.OffsetFetchRequest(group_id=world.topic, topics=(topic,), require_stable=require_stable)
    (found,) = world.client.ask("OffsetFetch", 7, request).topics[0].partitions
    return found.committed_offset, found.committed_leader_epoch, found.metadata, found.error_code


def offset_commit_row(world, version):
    find(world, FOR_GROUP, world.topic)
    epoch = 0 if version >= 6 else -1
    return commit_request(world, version, world.topic), [
        ([0], lambda a: [p.partition_index for p in a.topics[0].partitions]),
        ((2, epoch, "note", 0), lambda a: committed(world)),
    ]


def offset_fetch_row(world, version):
    commit(world)
    if version < 8:
        topic = offset_fetch.OffsetFetchRequestTopic(name=world.topic, partition_indexes=(0, 1))
        request = offset_fetch.OffsetFetchRequest(group_id=world.topic, topics=(topic,))
    else:
        named = {"topic_id": world.topic_id} if version >= 10 else {"name": world.topic}
        topic = offset_fetch.OffsetFetchRequestTopics(**named, partition_indexes=(0, 1))
        group = offset_fetch.OffsetFetchRequestGroup(group_id=world.topic, topics=(topic,))
        request = offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=True)

    def partitions(answer):
        return (answer if version < 8 else answer.groups[0]).topics[0].partitions

    return request, [
        ([(0, 2, "note"), (1, -1, "")], lambda a: [shape(p) for p in partitions(a)]),
        (0 if version >= 5 else -1, lambda a: partitions(a)[0].committed_leader_epoch),
    ]


def shape(partition):
    return partition.partition_index, partition.committed_offset, partition.metadata


def offset_delete_row(world, version):
    commit(world)
    asked = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topic = offset_delete.OffsetDeleteRequestTopic(name=world.topic, partitions=(asked,))
    request = offset_delete.OffsetDeleteRequest(group_id=world.topic, topics=(topic,))
    return request, [
        ([0], lambda a: [p.partition_index for p in a.topics[0].partitions]),
        ((-1, -1, "", 0), lambda a: committed(world)),
    ]


def find_coordinator_row(world, version):
    kind = FOR_GROUP if version == 0 else FOR_TRANSACTION if version < 6 else FOR_SHARE
    key = f"{world.topic}:{encode_uuid(world.topic_id)}:0" if kind == FOR_SHARE else world.topic
    request = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,))
    return request, [
        ((1, "127.0.0.1", world.cluster.port), lambda a: address(a if version < 4 else a.coordinators[0])),
        ([key] if version >= 4 else [], lambda a: [c.key for c in a.coordinators]),
    ]


def address(node):
    return node.node_id, node.host, node.port


# --- classic groups


def join_request(world, **fields):
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=METADATA)
    return join_group.JoinGroupRequest(
        group_id=world.topic,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(protocol,),
        **fields,
    )


def sync_request(world, member_id):
    assignment = sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNMENT)
    return sync_group.SyncGroupRequest(
        group_id=world.topic,
        generation_id=1,
        member_id=member_id,
        group_instance_id=INSTANCE,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(assignment,),
    )


def join(world):
    """Have a group whose only member, a static one, leads its first generation; gives the member's id."""
    find(world, FOR_GROUP, world.topic)
    joined = world.client.ask("JoinGroup", 9, join_request(world, group_instance_id=INSTANCE))
    assert (0, 1) == (joined.error_code, joined.generation_id)
    return joined.member_id


def settle(world):
    """Have a group whose only member has its assignment; gives the member's id."""
    member_id = join(world)
    assert world.client.ask("SyncGroup", 5, sync_request(world, member_id)).error_code == 0
    return member_id


def described(world):
    """The row's group, as a description shows it."""
    request = describe_groups.DescribeGroupsRequest(groups=(world.topic,))
    return world.client.ask("DescribeGroups", 5, request).groups[0]


def join_group_row(world, version):
    find(world, FOR_GROUP, world.topic)
    member_id = ""
    if version >= 4:
        # A new member is sent away once, with the id to come back with (KIP-394).
        first = world.client.ask("JoinGroup", version, join_request(world))
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.member_id
    return join_request(world, member_id=member_id), [
        ((1, "range"), lambda a: (a.generation_id, a.protocol_name)),
        ("consumer" if version >= 7 else None, lambda a: a.protocol_type),
        (True, lambda a: a.member_id == a.leader and a.member_id.startswith(member_id or "wire-client-")),
        ([METADATA], lambda a: [bytes(m.metadata) for m in a.members if m.member_id == a.leader]),
    ]


def sync_group_row(world, version):
    return sync_request(world, join(world)), [
        (ASSIGNMENT, lambda a: bytes(a.assignment)),
        (("consumer", "range") if version >= 5 else (None, None), lambda a: (a.protocol_type, a.protocol_name)),
        ("Stable", lambda a: described(world).group_state),
    ]


def heartbeat_row(world, version):
    member_id = settle(world)

    def beat(generation):
        return heartbeat.HeartbeatRequest(
            group_id=world.topic, generation_id=generation, member_id=member_id, group_instance_id=INSTANCE
        )

    # The answer is nothing but an error code, so a member of another generation must get another one.
    return beat(1), [
        (ErrorCode.ILLEGAL_GENERATION, lambda a: world.client.ask("Heartbeat", version, beat(2)).error_code)
    ]


def leave_group_row(world, version):
    member_id = settle(world)
    leaving = leave_group.MemberIdentity(member_id=member_id, group_instance_id=INSTANCE, reason="done")
    request = leave_group.LeaveGroupRequest(group_id=world.topic, member_id=member_id, members=(leaving,))
    return request, [
        (
            [(member_id, INSTANCE)] if version >= 3 else [],
            lambda a: [(m.member_id, m.group_instance_id) for m in a.members],
        ),
        (("Empty", ()), lambda a: (described(world).group_state, described(world).members)),
    ]


def describe_groups_row(world, version):
    member_id = settle(world)
    request = describe_groups.DescribeGroupsRequest(groups=(world.topic,), include_authorized_operations=True)
    return request, [
        (
            [(world.topic, "Stable", "consumer", "range")],
            lambda a: [(g.group_id, g.group_state, g.protocol_type, g.protocol_data) for g in a.groups],
        ),
        (
            [(member_id, INSTANCE if version >= 4 else None, "wire-client", METADATA, ASSIGNMENT)],
            lambda a: [member_shape(m) for m in a.groups[0].members],
        ),
        (version >= 3, lambda a: a.groups[0].authorized_operations > 0),
    ]


def member_shape(member):
    metadata, assignment = bytes(member.member_metadata), bytes(member.member_assignment)
    return member.member_id, member.group_instance_id, member.client_id, metadata, assignment


def list_groups_row(world, version):
    settle(world)
    empty = f"{world.topic}-empty"
    commit(world, empty)
    request = list_groups.ListGroupsRequest(states_filter=("Stable",), types_filter=("classic",))
    listed = (world.topic, "consumer", "Stable" if version >= 4 else "", "classic" if version >= 5 else "")
    return request, [
        (True, lambda a: listed in [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in a.groups]),
        (version < 4, lambda a: empty in [g.group_id for g in a.groups]),
    ]


def delete_groups_row(world, version):
    commit(world)
    request = delete_groups.DeleteGroupsRequest(groups_names=(world.topic,))
    return request, [
        ([world.topic], lambda a: [r.group_id for r in a.results]),
        ((-1, -1, "", 0), lambda a: committed(world)),
    ]


# --- transactions


def begin(world):
    """Have a producer with a transactional id; gives the fields by which requests name it."""
    find(world, FOR_TRANSACTION, world.topic)
    request = init_producer_id.InitProducerIdRequest(transactional_id=world.topic, transaction_timeout_ms=60_000)
    made = world.client.ask("InitProducerId", 5, request)
    assert made.error_code == 0
    return {
        "transactional_id": world.topic,
        "producer_id": made.producer_id,
        "producer_epoch": made.producer_epoch,
    }


def open_transaction(world):
    """The same, with one record in an open transaction."""
    producer = begin(world)
    batch = build_batch(
        [NewRecord(timestamp=1, value=b"v")],
        producer_id=producer["producer_id"],
        producer_epoch=producer["producer_epoch"],
        base_sequence=0,
        transactional=True,
    )
    data = produce.PartitionProduceData(index=0, records=bytes(batch))
    topic = produce.TopicProduceData(name=world.topic, partition_data=(data,))
    # From version 12 on the broker takes the partition into the transaction itself (KIP-890).
    request = produce.ProduceRequest(transactional_id=world.topic, acks=-1, timeout_ms=1000, topic_data=(topic,))
    answer = world.client.ask("Produce", 12, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return producer


def transaction(world):
    """Where the row's transaction stands, and the partitions in it."""
    request = describe_transactions.DescribeTransactionsRequest(transactional_ids=(world.topic,))
    (state,) = world.client.ask("DescribeTransactions", 0, request).transaction_states
    return state.transaction_state, {topic.topic: sorted(topic.partitions) for topic in state.topics}


def add_partitions_to_txn_row(world, version):
    producer = begin(world)
    topics = (add_partitions_to_txn.AddPartitionsToTxnTopic(name=world.topic, partitions=(0, 1)),)
    if version >= 4:
        adding = add_partitions_to_txn.AddPartitionsToTxnTransaction(**producer, topics=topics)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=(adding,))
    else:
        fields = {f"v3_and_below_{name}": value for name, value in producer.items()}
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(**fields, v3_and_below_topics=topics)

    def results(answer):
        return answer.results_by_transaction[0].topic_results if version >= 4 else answer.results_by_topic_v3_and_below

    return request, [
        (
            [(0, 0), (1, 0)],
            lambda a: [(p.partition_index, p.partition_error_code) for p in results(a)[0].results_by_partition],
        ),
        (("Ongoing", {world.topic: [0, 1]}), lambda a: transaction(world)),
    ]


def add_offsets_to_txn_row(world, version):
    find(world, FOR_GROUP, world.topic)
    request = add_offsets_to_txn.AddOffsetsToTxnRequest(**begin(world), group_id=world.topic)
    partition = world.cluster.ask(lambda broker: broker.groups.partition_for(world.topic))
    return request, [(("Ongoing", {"__consumer_offsets": [partition]}), lambda a: transaction(world))]


def txn_offset_commit_row(world, version):
    find(world, FOR_GROUP, world.topic)
    producer = begin(world)
    if version < 5:
        adding = add_offsets_to_txn.AddOffsetsToTxnRequest(**producer, group_id=world.topic)
        assert world.client.ask("AddOffsetsToTxn", 3, adding).error_code == 0
    done = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=world.topic, partitions=(done,))
    request = txn_offset_commit.TxnOffsetCommitRequest(**producer, group_id=world.topic, topics=(topic,))
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    # Until the transaction ends the offset does not count, and who wants a stable one has to wait.
    return request, [
        ((-1, 0), lambda a: committed(world)[::3]),
        ((-1, unstable), lambda a: committed(world, require_stable=True)[::3]),
    ]


def end_txn_row(world, version):
    producer = open_transaction(world)
    request = end_txn.EndTxnRequest(**producer, committed=True)
    next_epoch = (producer["producer_id"], producer["producer_epoch"] + 1) if version >= 5 else (-1, -1)
    return request, [
        (True, lambda a: transaction(world)[0] in {"PrepareCommit", "CompleteCommit"}),
        (next_epoch, lambda a: (a.producer_id, a.producer_epoch)),
    ]


def write_txn_markers_row(world, version):
    producer = open_transaction(world)
    topic = write_txn_markers.WritableTxnMarkerTopic(name=world.topic, partition_indexes=(0,))
    # A marker that tells its transaction version is of an epoch later than what it ends (KIP-890).
    later = 1 if version >= 2 else 0
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=producer["producer_id"],
        producer_epoch=producer["producer_epoch"] + later,
        transaction_result=False,
        topics=(topic,),
        transaction_version=2,
    )
    assert open_from(world) == 3
    return write_txn_markers.WriteTxnMarkersRequest(markers=(marker,)), [
        (producer["producer_id"], lambda a: a.markers[0].producer_id),
        ([0], lambda a: [p.partition_index for p in a.markers[0].topics[0].partitions]),
        (5, lambda a: open_from(world)),
    ]


def open_from(world):
    """The last stable offset: where the first open transaction begins, or the end."""
    return world.client.fetch(world.topic, 0).last_stable_offset


def describe_transactions_row(world, version):
    producer = open_transaction(world)
    request = describe_transactions.DescribeTransactionsRequest(transactional_ids=(world.topic,))
    return request, [
        (
            [(world.topic, producer["producer_id"], producer["producer_epoch"], "Ongoing", 60_000)],
            lambda a: [
                (s.transactional_id, s.producer_id, s.producer_epoch, s.transaction_state, s.transaction_timeout_ms)
                for s in a.transaction_states
            ],
        ),
        ([(world.topic, (0,))], lambda a: [(t.topic, t.partitions) for t in a.transaction_states[0].topics]),
    ]


def list_transactions_row(world, version):
    producer = open_transaction(world)
    pattern = f"{world.topic}.*" if version >= 2 else None
    request = list_transactions.ListTransactionsRequest(
        state_filters=("Ongoing", "Dreaming"),
        producer_id_filters=(producer["producer_id"],),
        transactional_id_pattern=pattern,
    )
    return request, [
        (
            [(world.topic, producer["producer_id"], "Ongoing")],
            lambda a: [(s.transactional_id, s.producer_id, s.transaction_state) for s in a.transaction_states],
        ),
        (("Dreaming",), lambda a: a.unknown_state_filters),
    ]


# --- consumer groups


def consumer_request(world, member_id):
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=world.topic,
        member_id=member_id,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=(world.topic,),
        topic_partitions=(),
    )


def assigned(assignment):
    return [(t.topic_id, sorted(t.partitions)) for t in assignment.topic_partitions]


def consumer_group_heartbeat_row(world, version):
    find(world, FOR_GROUP, world.topic)
    member_id = "member" if version >= 1 else ""
    return consumer_request(world, member_id), [
        (True, lambda a: a.member_id == member_id if member_id else len(a.member_id) > 0),
        # A group begins at epoch 1, and its first member takes it to the next.
        ((2, 5_000), lambda a: (a.member_epoch, a.heartbeat_interval_ms)),
        ([(world.topic_id, [0, 1])], lambda a: assigned(a.assignment)),
    ]


def consumer_group_describe_row(world, version):
    find(world, FOR_GROUP, world.topic)
    assert world.client.ask("ConsumerGroupHeartbeat", 1, consumer_request(world, "member")).error_code == 0
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=(world.topic,))
    return request, [
        ([("Stable", 2, 2, "uniform")], lambda a: [(*epochs(g), g.assignor_name) for g in a.groups]),
        (
            [("member", (world.topic,), CONSUMER_PROTOCOL if version >= 1 else -1)],
            lambda a: [(m.member_id, m.subscribed_topic_names, m.member_type) for m in a.groups[0].members],
        ),
        ([(world.topic_id, [0, 1])], lambda a: assigned(a.groups[0].members[0].assignment)),
    ]


def epochs(group):
    return group.group_state, group.group_epoch, group.assignment_epoch


# --- streams groups


def streams_request(world):
    wire = streams_group_heartbeat
    subtopology = wire.Subtopology(subtopology_id="0", source_topics=(world.topic,))
    return wire.StreamsGroupHeartbeatRequest(
        group_id=world.topic,
        member_id="member",
        rebalance_timeout_ms=30_000,
        topology=wire.Topology(subtopologies=(subtopology,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="process",
    )


def hurry(world):
    """Have a coordinator that gives a streams group its tasks at once instead of waiting for more members."""
    find(world, FOR_GROUP, world.topic)
    wire = incremental_alter_configs
    config = wire.AlterableConfig(name="streams.initial.rebalance.delay.ms", config_operation=0, value="0")
    group = wire.AlterConfigsResource(resource_type=GROUP_CONFIG, resource_name=world.topic, configs=(config,))
    request = wire.IncrementalAlterConfigsRequest(resources=(group,))
    assert world.client.ask("IncrementalAlterConfigs", 1, request).responses[0].error_code == 0


def tasks(found):
    return [(t.subtopology_id, sorted(t.partitions)) for t in found]


def streams_group_heartbeat_row(world, version):
    hurry(world)
    return streams_request(world), [
        (("member", 5_000), lambda a: (a.member_id, a.heartbeat_interval_ms)),
        (True, lambda a: a.member_epoch >= 1),
        ([("0", [0, 1])], lambda a: tasks(a.active_tasks)),
        ((), lambda a: a.status),
    ]


def streams_group_describe_row(world, version):
    hurry(world)
    epoch = world.client.ask("StreamsGroupHeartbeat", 0, streams_request(world)).member_epoch
    request = streams_group_describe.StreamsGroupDescribeRequest(group_ids=(world.topic,))
    return request, [
        ([("Stable", epoch, epoch)], lambda a: [epochs(g) for g in a.groups]),
        ([("0", (world.topic,))], lambda a: [(s.subtopology_id, s.source_topics) for s in subtopologies(a)]),
        (
            [("member", "process", [("0", [0, 1])])],
            lambda a: [(m.member_id, m.process_id, tasks(m.assignment.active_tasks)) for m in a.groups[0].members],
        ),
    ]


def subtopologies(answer):
    return answer.groups[0].topology.subtopologies


ROWS = {name: row for name, row in globals().items() if name.endswith("_row")}
