"""Rows for share groups and their state; `test_every_api.py` asks them."""

from tests.scenarios.coordinator_rows import assigned, find

from headrace.model.ids import encode_uuid
from headrace.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    delete_share_group_state,
    describe_share_group_offsets,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    write_share_group_state,
)

FOR_GROUP, FOR_TRANSACTION, FOR_SHARE = 0, 1, 2
GROUP_CONFIG = 32
INSTANCE = "instance"
METADATA, ASSIGNMENT = b"what I can do", b"what I have to do"
ACCEPT, RENEW = 1, 4
ACKNOWLEDGED = 2
CONSUMER_PROTOCOL = 1


# --- share groups


def alter_request(world, start_offset):
    asked = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=start_offset
    )
    topic = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(topic_name=world.topic, partitions=(asked,))
    return alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id=world.topic, topics=(topic,))


def alter(world):
    """Have a share group that begins at the second record; without this it would begin after the last one."""
    find(world, FOR_GROUP, world.topic)
    answer = world.client.ask("AlterShareGroupOffsets", 0, alter_request(world, 1))
    assert answer.responses[0].partitions[0].error_code == 0


def share_offsets_request(world):
    topic = describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=world.topic, partitions=(0,))
    group = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=world.topic, topics=(topic,))
    return describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=(group,))


def share_offsets(answer):
    return [(p.partition_index, p.start_offset, p.lag) for p in answer.groups[0].topics[0].partitions]


def told_share_offsets(world):
    return share_offsets(world.client.ask("DescribeShareGroupOffsets", 1, share_offsets_request(world)))


def share_heartbeat_request(world):
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=world.topic, member_id="member", subscribed_topic_names=(world.topic,)
    )


def share_join(world):
    """Have a share group with a member; gives the answer it was let in with."""
    find(world, FOR_GROUP, world.topic)
    joined = world.client.ask("ShareGroupHeartbeat", 1, share_heartbeat_request(world))
    assert joined.error_code == 0
    return joined


def share_fetch_request(world, **fields):
    asked = share_fetch.FetchPartition(partition_index=0)
    topic = share_fetch.FetchTopic(topic_id=world.topic_id, partitions=(asked,))
    return share_fetch.ShareFetchRequest(
        group_id=world.topic,
        member_id="member",
        min_bytes=1,
        max_bytes=1 << 20,
        batch_size=10,
        topics=(topic,),
        **fields,
    )


def share_group_heartbeat_row(world, version):
    find(world, FOR_GROUP, world.topic)
    return share_heartbeat_request(world), [
        (("member", 5_000), lambda a: (a.member_id, a.heartbeat_interval_ms)),
        (True, lambda a: a.member_epoch >= 1),
        ([(world.topic_id, [0, 1])], lambda a: assigned(a.assignment)),
    ]


def share_group_describe_row(world, version):
    epoch = share_join(world).member_epoch
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=(world.topic,))
    return request, [
        (
            [(world.topic, "Stable", "simple")],
            lambda a: [(g.group_id, g.group_state, g.assignor_name) for g in a.groups],
        ),
        (
            [("member", epoch, (world.topic,))],
            lambda a: [(m.member_id, m.member_epoch, m.subscribed_topic_names) for m in a.groups[0].members],
        ),
        ([(world.topic_id, [0, 1])], lambda a: assigned(a.groups[0].members[0].assignment)),
    ]


def share_fetch_row(world, version):
    alter(world)
    share_join(world)
    # In its second version a request can insist on no more records than it asks for, instead of whole batches.
    request = share_fetch_request(world, max_records=1, share_acquire_mode=1)
    return request, [
        (
            [(1, 1 if version >= 2 else 2, 1)],
            lambda a: [
                (r.first_offset, r.last_offset, r.delivery_count) for r in a.responses[0].partitions[0].acquired_records
            ],
        ),
        (True, lambda a: len(a.responses[0].partitions[0].records) > 0),
        (30_000, lambda a: a.acquisition_lock_timeout_ms),
    ]


def acknowledge_request(world, version):
    """Accept the one record, and from the second version on keep the other for longer."""
    said = [(1, ACCEPT), (2, RENEW)][:version]
    batches = tuple(
        share_acknowledge.AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(kind,))
        for offset, kind in said
    )
    partition = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topic = share_acknowledge.AcknowledgeTopic(topic_id=world.topic_id, partitions=(partition,))
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=world.topic, member_id="member", share_session_epoch=1, is_renew_ack=version >= 2, topics=(topic,)
    )


def acquire(world):
    """Have a share group whose member has both records from the second one on, and a session."""
    alter(world)
    share_join(world)
    fetched = world.client.ask("ShareFetch", 2, share_fetch_request(world, max_records=10))
    acquired = fetched.responses[0].partitions[0].acquired_records
    assert [(1, 2)] == [(run.first_offset, run.last_offset) for run in acquired]


def share_acknowledge_row(world, version):
    acquire(world)
    # Of the two records from the start on, one is done.
    return acknowledge_request(world, version), [
        ([0], lambda a: [p.partition_index for p in a.responses[0].partitions]),
        ([(0, 1, 1)], lambda a: told_share_offsets(world)),
        (30_000 if version >= 2 else 0, lambda a: a.acquisition_lock_timeout_ms),
    ]


def describe_share_group_offsets_row(world, version):
    acquire(world)
    assert world.client.ask("ShareAcknowledge", 1, acknowledge_request(world, 1)).error_code == 0
    return share_offsets_request(world), [
        (world.topic_id, lambda a: a.groups[0].topics[0].topic_id),
        ([(0, 1, 1 if version >= 1 else -1)], share_offsets),
    ]


def alter_share_group_offsets_row(world, version):
    alter(world)
    return alter_request(world, 2), [
        (world.topic_id, lambda a: a.responses[0].topic_id),
        ([(0, 2)], lambda a: [found[:2] for found in told_share_offsets(world)]),
    ]


def delete_share_group_offsets_row(world, version):
    alter(world)
    topic = delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=world.topic)
    request = delete_share_group_offsets.DeleteShareGroupOffsetsRequest(group_id=world.topic, topics=(topic,))
    return request, [
        ([(world.topic, world.topic_id)], lambda a: [(t.topic_name, t.topic_id) for t in a.responses]),
        ([(0, -1, -1)], lambda a: told_share_offsets(world)),
    ]


# --- share state, spoken between brokers


def of_first_partition(world, request, topic, partition):
    """A request about the first partition; all of these APIs have one form."""
    return request(group_id=world.topic, topics=(topic(topic_id=world.topic_id, partitions=(partition,)),))


def initialize_request(world):
    wire = initialize_share_group_state
    partition = wire.PartitionData(partition=0, state_epoch=4, start_offset=1)
    return of_first_partition(world, wire.InitializeShareGroupStateRequest, wire.InitializeStateData, partition)


def write_request(world):
    wire = write_share_group_state
    done = wire.StateBatch(first_offset=2, last_offset=2, delivery_state=ACKNOWLEDGED, delivery_count=1)
    partition = wire.PartitionData(
        partition=0, state_epoch=4, leader_epoch=0, start_offset=1, delivery_complete_count=1, state_batches=(done,)
    )
    return of_first_partition(world, wire.WriteShareGroupStateRequest, wire.WriteStateData, partition)


def read_request(world):
    wire = read_share_group_state
    partition = wire.PartitionData(partition=0, leader_epoch=0)
    return of_first_partition(world, wire.ReadShareGroupStateRequest, wire.ReadStateData, partition)


def summary_request(world):
    wire = read_share_group_state_summary
    partition = wire.PartitionData(partition=0, leader_epoch=0)
    return of_first_partition(world, wire.ReadShareGroupStateSummaryRequest, wire.ReadStateSummaryData, partition)


def initialize(world):
    """Have a share partition with a state."""
    find(world, FOR_SHARE, f"{world.topic}:{encode_uuid(world.topic_id)}:0")
    answer = world.client.ask("InitializeShareGroupState", 0, initialize_request(world))
    assert answer.results[0].partitions[0].error_code == 0


def write(world):
    """Have a share partition with a state in which one record is done."""
    initialize(world)
    answer = world.client.ask("WriteShareGroupState", 1, write_request(world))
    assert answer.results[0].partitions[0].error_code == 0


def summary(answer):
    (state,) = answer.results[0].partitions
    return state.state_epoch, state.start_offset, state.delivery_complete_count


def told_summary(world):
    return summary(world.client.ask("ReadShareGroupStateSummary", 1, summary_request(world)))


def state_batches(answer):
    return [
        (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
        for b in answer.results[0].partitions[0].state_batches
    ]


def initialize_share_group_state_row(world, version):
    find(world, FOR_SHARE, f"{world.topic}:{encode_uuid(world.topic_id)}:0")
    return initialize_request(world), [
        (world.topic_id, lambda a: a.results[0].topic_id),
        ((4, 1), lambda a: told_summary(world)[:2]),
    ]


def write_share_group_state_row(world, version):
    initialize(world)
    return write_request(world), [
        ((4, 1, 1 if version >= 1 else -1), lambda a: told_summary(world)),
        (
            [(2, 2, ACKNOWLEDGED, 1)],
            lambda a: state_batches(world.client.ask("ReadShareGroupState", 0, read_request(world))),
        ),
    ]


def read_share_group_state_row(world, version):
    write(world)
    return read_request(world), [
        ((4, 1), lambda a: (a.results[0].partitions[0].state_epoch, a.results[0].partitions[0].start_offset)),
        ([(2, 2, ACKNOWLEDGED, 1)], state_batches),
    ]


def read_share_group_state_summary_row(world, version):
    write(world)
    return summary_request(world), [((4, 1, 1 if version >= 1 else -1), summary)]


def delete_share_group_state_row(world, version):
    write(world)
    wire = delete_share_group_state
    request = of_first_partition(
        world, wire.DeleteShareGroupStateRequest, wire.DeleteStateData, wire.PartitionData(partition=0)
    )
    return request, [
        (world.topic_id, lambda a: a.results[0].topic_id),
        ((0, -1, -1), lambda a: told_summary(world)),
    ]


ROWS = {name: row for name, row in globals().items() if name.endswith("_row")}
