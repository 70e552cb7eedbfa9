"""StreamsGroupDescribe, key 89.

Versions: 0, all.
Behaviour: streams groups with their epochs, topology and members, the tasks each has and is to have. Internal topics
have their number of partitions once the topology is ready. A group that is not there, or is of another kind, is
GROUP_ID_NOT_FOUND.
Deviations: none known.
KIPs: 1071, 430 authorized operations.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import NOT_ASKED
from headrace.broker.handlers.api69_consumer_group_describe import GROUP_OPERATIONS
from headrace.broker.handlers.api88_streams_group_heartbeat import require_streams_groups
from headrace.cores.groups.streams import describe
from headrace.cores.groups.streams_commands import DescribedStreamsGroup
from headrace.cores.groups.streams_member import StreamsMember
from headrace.cores.groups.streams_tasks import TaskIds as TaskIdsOfRole
from headrace.cores.groups.streams_tasks import Tasks
from headrace.model import streams_group_records as records
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages import streams_group_describe as wire


async def handle(call: Call, request: wire.StreamsGroupDescribeRequest) -> wire.StreamsGroupDescribeResponse:
    """Describe each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return wire.StreamsGroupDescribeResponse(
        groups=tuple([await _described(call, group_id, operations) for group_id in request.group_ids])
    )


async def _described(call: Call, group_id: str, operations: int) -> wire.DescribedGroup:
    try:
        require_streams_groups(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        shard = call.broker.groups.shard_for(group_id)
        group: DescribedStreamsGroup = await shard.look(
            lambda token, now_ms: describe(shard.core, group_id, token, now_ms)
        )
    except KafkaError as error:
        return wire.DescribedGroup(group_id=group_id, error_code=int(error.code), error_message=error.message or None)
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=wire.Topology(epoch=group.topology_epoch, subtopologies=tuple(map(_subtopology, group.subtopologies))),
        members=tuple(_member(member, target) for member, target in group.members),
        authorized_operations=operations,
    )


def _subtopology(subtopology: records.Subtopology) -> wire.Subtopology:
    return wire.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=tuple(sorted(subtopology.source_topics)),
        repartition_sink_topics=tuple(sorted(subtopology.repartition_sink_topics)),
        state_changelog_topics=_topics(subtopology.state_changelog_topics),
        repartition_source_topics=_topics(subtopology.repartition_source_topics),
    )


def _topics(topics: tuple[records.TopicInfo, ...]) -> tuple[wire.TopicInfo, ...]:
    return tuple(
        wire.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=tuple(wire.KeyValue(key=config.key, value=config.value) for config in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda each: each.name)
    )


def _member(member: StreamsMember, target: Tasks) -> wire.Member:
    endpoint = member.user_endpoint
    return wire.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else wire.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple(wire.KeyValue(key=key, value=value) for key, value in member.client_tags),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: Tasks) -> wire.Assignment:
    return wire.Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: TaskIdsOfRole) -> tuple[wire.TaskIds, ...]:
    return tuple(wire.TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name]))) for name in sorted(tasks))


API = Api(key=89, low=0, high=0, handle=handle)
