"""StreamsGroupHeartbeat, key 88.

Versions: 0, all.
Behaviour: a member of a streams application joins with its topology (epoch 0), lives, gives up and gets tasks, and
leaves (-1). Internal topics that are missing are created with the settings that the topology asks for; until they are
there, and while the user's own topics are missing or do not fit, a status says so and nobody has tasks. One member can
ask all others to stop. As in Apache Kafka 4.3 static members, warmup tasks, task offsets, source topics by expression
and other topologies than the first are refused.
Deviations: internal topics are created before the answer is sent, so that a failure is told at once. A member that says
it has other tasks than it should is told them again; Kafka tells each change once. A member may rejoin a full group. A
topology of more than 1,000 subtopologies or 10,000 topics, or more tasks than fit into one write to the log, is refused
with STREAMS_INVALID_TOPOLOGY. The hash of the topics in the group's record is not Kafka's: a coordinator that takes
over from the other kind raises the group epoch once.
KIPs: 1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.broker.api import Api, Call
from headrace.broker.features import STREAMS_VERSION
from headrace.broker.streams_topics import create_internal_topics
from headrace.cores.groups.streams import heartbeat
from headrace.cores.groups.streams_commands import EndpointPartitions, StreamsHeartbeat, StreamsHeartbeatAnswer
from headrace.cores.groups.streams_tasks import TaskIds as TaskIdsOfRole
from headrace.cores.groups.streams_tasks import Tasks, by_subtopology
from headrace.cores.groups.streams_topology import StatusCode
from headrace.model import streams_group_records as records
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages import streams_group_heartbeat as wire

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

PROTOCOL = "streams"

FAULTS_SHOWN_MAX = 3


async def handle(call: Call, request: wire.StreamsGroupHeartbeatRequest) -> wire.StreamsGroupHeartbeatResponse:
    """Serve a member of a streams application."""
    try:
        require_streams_groups(call.broker)
        _check_served(request)
        command = _command(call, request)
        shard = call.broker.groups.shard_for(request.group_id)
        answer: StreamsHeartbeatAnswer = await shard.ask(
            lambda token, now_ms: heartbeat(shard.core, command, token, now_ms)
        )
        if answer.missing:
            answer = await _with_topics_made(call.broker, answer)
    except KafkaError as error:
        return wire.StreamsGroupHeartbeatResponse(error_code=int(error.code), error_message=error.message or None)
    return _response(answer)


def require_streams_groups(broker: Broker) -> None:
    """KafkaError unless the broker serves streams groups and the cluster has them switched on (`streams.version`)."""
    is_served = PROTOCOL in broker.config["group.coordinator.rebalance.protocols"]
    if not is_served or broker.metadata.features.get(STREAMS_VERSION, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The streams group protocol is not enabled.")


# --- the request


def _check_served(request: wire.StreamsGroupHeartbeatRequest) -> None:
    """KafkaError for what Apache Kafka 4.3 does not serve either, and for what cannot be said in the core's words."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    faults = (
        ("Static membership is not yet supported.", request.instance_id is not None),
        ("TaskOffsets are not supported yet.", request.task_offsets is not None),
        ("TaskEndOffsets are not supported yet.", request.task_end_offsets is not None),
        ("WarmupTasks are not supported yet.", bool(request.warmup_tasks)),
        (
            "Regular expressions for source topics are not supported yet.",
            any(subtopology.source_topic_regex for subtopology in subtopologies),
        ),
        (
            "If one task-type is non-null, all must be non-null.",
            any(role is None for role in tasks) and not all(role is None for role in tasks),
        ),
    )
    for sentence, is_so in faults:
        if is_so:
            raise KafkaError(ErrorCode.INVALID_REQUEST, sentence)


def _command(call: Call, request: wire.StreamsGroupHeartbeatRequest) -> StreamsHeartbeat:
    endpoint = request.user_endpoint
    return StreamsHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=call.header.client_id or "",
        client_host=f"/{call.connection.peer[0]}",
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if request.topology is None else _topology(request.topology),
        owned=_owned(request),
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else records.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=None if request.client_tags is None else tuple((tag.key, tag.value) for tag in request.client_tags),
        is_shutting_down=request.shutdown_application,
        endpoint_epoch=request.endpoint_information_epoch,
    )


def _owned(request: wire.StreamsGroupHeartbeatRequest) -> Tasks | None:
    if request.active_tasks is None or request.standby_tasks is None:
        return None
    return Tasks(active=_tasks(request.active_tasks), standby=_tasks(request.standby_tasks))


def _tasks(tasks: tuple[wire.TaskIds, ...]) -> TaskIdsOfRole:
    """Tasks of one role; a subtopology that is named twice counts as a whole."""
    return by_subtopology((each.subtopology_id, partition) for each in tasks for partition in each.partitions)


def _topology(topology: wire.Topology) -> records.StreamsGroupTopologyValue:
    return records.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=tuple(
            records.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                state_changelog_topics=tuple(map(_topic, each.state_changelog_topics)),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=tuple(map(_topic, each.repartition_source_topics)),
                copartition_groups=tuple(
                    records.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in topology.subtopologies
        ),
    )


def _topic(topic: wire.TopicInfo) -> records.TopicInfo:
    return records.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=tuple(records.TopicConfig(key=config.key, value=config.value) for config in topic.topic_configs),
    )


# --- internal topics


async def _with_topics_made(broker: Broker, answer: StreamsHeartbeatAnswer) -> StreamsHeartbeatAnswer:
    """Create the topics that are missing, and add to the answer why one could not be."""
    faults = await create_internal_topics(broker, answer.missing)
    if not faults:
        return answer
    shown = ", ".join(f"{name} ({error})" for name, error in list(faults.items())[:FAULTS_SHOWN_MAX])
    more = len(faults) - FAULTS_SHOWN_MAX
    reason = f"; Creation failed: {shown}{f' and {more} more' if more > 0 else ''}."
    return replace(
        answer,
        statuses=tuple(
            replace(status, detail=status.detail + reason)
            if status.code is StatusCode.MISSING_INTERNAL_TOPICS
            else status
            for status in answer.statuses
        ),
    )


# --- the response


def _response(answer: StreamsHeartbeatAnswer) -> wire.StreamsGroupHeartbeatResponse:
    tasks = answer.tasks
    return wire.StreamsGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        status=tuple(wire.Status(status_code=int(each.code), status_detail=each.detail) for each in answer.statuses),
        active_tasks=None if tasks is None else _task_ids(tasks.active),
        standby_tasks=None if tasks is None else _task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=None if answer.endpoints is None else tuple(map(_endpoint, answer.endpoints)),
    )


def _task_ids(tasks: TaskIdsOfRole) -> tuple[wire.TaskIds, ...]:
    return tuple(wire.TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name]))) for name in sorted(tasks))


def _endpoint(known: EndpointPartitions) -> wire.EndpointToPartitions:
    return wire.EndpointToPartitions(
        user_endpoint=wire.Endpoint(host=known.endpoint.host, port=known.endpoint.port),
        active_partitions=tuple(wire.TopicPartition(topic=name, partitions=indexes) for name, indexes in known.active),
        standby_partitions=tuple(
            wire.TopicPartition(topic=name, partitions=indexes) for name, indexes in known.standby
        ),
    )


API = Api(key=88, low=0, high=0, handle=handle)
