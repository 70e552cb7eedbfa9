"""The streams group protocol (KIP-1071): one heartbeat for everything.

A member joins with epoch 0 and the topology of its application, and is told in each answer which tasks it has. It gives
up those that are not in there any more and says so in the next heartbeat; only then does another member get them. It
leaves with epoch -1.

Each heartbeat does, in this order: see what the topology comes to on this cluster; take in what the member tells of
itself; raise the group epoch if that, a topic or a setting has changed; make the target assignment for a new epoch; let
the member do its next step towards its target.
Everything that can be refused is checked before the first record is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.groups.classic_group import ClassicGroup
from headrace.cores.groups.consumer_commands import NO_TIMEOUT
from headrace.cores.groups.consumer_member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH
from headrace.cores.groups.streams_assignment import assign_if_due, raise_epoch
from headrace.cores.groups.streams_commands import DescribedStreamsGroup, StreamsHeartbeat, StreamsHeartbeatAnswer
from headrace.cores.groups.streams_endpoints import endpoints_of
from headrace.cores.groups.streams_group import NOT_VALIDATED, StreamsGroup, TopicsSeen
from headrace.cores.groups.streams_limits import StreamsLimits, limits_of
from headrace.cores.groups.streams_member import MemberState, StreamsMember
from headrace.cores.groups.streams_membership import (
    TIMERS as TIMERS,
)
from headrace.cores.groups.streams_membership import emit_member, expect_heartbeat, expect_revocation, follow, remove
from headrace.cores.groups.streams_reconciliation import check_state
from headrace.cores.groups.streams_records import REPLAY as REPLAY
from headrace.cores.groups.streams_tasks import Tasks
from headrace.cores.groups.streams_topology import (
    ConfiguredTopology,
    Status,
    StatusCode,
    are_same,
    check_topology,
    configure,
    required_topics,
)
from headrace.cores.groups.subscription import metadata_hash
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.streams_group_records import StreamsGroupTopologyKey, StreamsGroupTopologyValue, Subtopology

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import Token


class _Ground(Struct, frozen=True, kw_only=True):
    """What a heartbeat stands on, worked out before anything changes."""

    topology: StreamsGroupTopologyValue
    configured: ConfiguredTopology
    topics_seen: TopicsSeen
    metadata_hash: int

    @property
    def validated_epoch(self) -> int:
        """The topology's epoch, if its tasks can run."""
        return self.topology.epoch if self.configured.is_ready else NOT_VALIDATED


# --- heartbeat


def heartbeat(groups: Groups, command: StreamsHeartbeat, token: Token, now_ms: int) -> Outcome:
    """Serve a member; the answer is a `StreamsHeartbeatAnswer`."""
    limits = limits_of(groups, command.group_id)
    check_heartbeat(command, limits)
    if command.member_epoch == LEAVING_EPOCH:
        return _leave(groups, command, token)
    found = _group_for(groups, command, limits)
    old = _member_for(found, command)
    ground = _ground(groups.metadata, found, command, limits)
    _check_tasks(ground.configured, command.owned)
    was_empty = found is None or found.is_empty()
    outcome = Outcome()
    group = _noted(groups, command, old, ground, limits, outcome)
    if was_empty and now_ms >= group.delayed_until_ms:
        group.delayed_until_ms = now_ms + limits.initial_rebalance_delay_ms
    delay = assign_if_due(groups, group, limits, outcome, now_ms)
    member = follow(groups, group, command.member_id, command.owned, outcome, now_ms)
    expect_heartbeat(group, member.member_id, limits.session_timeout_ms, outcome, now_ms)
    if command.is_shutting_down and group.shutdown_requested_by is None:
        group.shutdown_requested_by = member.member_id
    return outcome.reply(token, _answer(groups, group, command, old, member, delay, limits))


def check_heartbeat(command: StreamsHeartbeat, limits: StreamsLimits) -> None:
    """KafkaError unless a heartbeat makes sense by itself."""
    fault = next((sentence for sentence, is_so in _faults(command) if is_so), None)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, fault)
    if command.topology is not None:
        check_topology(command.topology)
    if _stored_bytes(command) > limits.write_bytes_max // 4:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "What the member tells of itself does not fit into the log.")


def _faults(command: StreamsHeartbeat) -> Iterable[tuple[str, bool]]:
    joining = command.member_epoch == JOINING_EPOCH
    return (
        ("MemberId can't be empty.", not command.member_id.strip()),
        ("GroupId can't be empty.", not command.group_id.strip()),
        ("RackId can't be empty.", command.rack_id is not None and not command.rack_id.strip()),
        (
            "RebalanceTimeoutMs must be provided in first request.",
            joining and command.rebalance_timeout_ms == NO_TIMEOUT,
        ),
        ("RebalanceTimeoutMs must not be negative.", command.rebalance_timeout_ms < NO_TIMEOUT),
        ("ActiveTasks must be empty when (re-)joining.", joining and (command.owned is None or bool(command.owned))),
        ("Topology must be non-null when (re-)joining.", joining and command.topology is None),
        ("Topology can only be provided when (re-)joining.", not joining and command.topology is not None),
        ("InstanceId can't be null.", command.member_epoch == LEAVING_STATIC_EPOCH),
        (
            f"MemberEpoch is {command.member_epoch}, but must be greater than or equal to -2.",
            command.member_epoch < LEAVING_STATIC_EPOCH,
        ),
    )


def _stored_bytes(command: StreamsHeartbeat) -> int:
    """About what the records of a member and its topology take."""
    topology = command.topology or StreamsGroupTopologyValue()
    tags = sum(len(key) + len(value) + 8 for key, value in command.client_tags or ())
    size = tags + sum(map(len, (command.client_id, command.process_id or "", command.rack_id or "")))
    for each in topology.subtopologies:
        names = (each.subtopology_id, *each.source_topics, *each.repartition_sink_topics)
        internal = (*each.repartition_source_topics, *each.state_changelog_topics)
        size += sum(len(name) + 4 for name in (*names, *(topic.name for topic in internal)))
        size += sum(len(config.key) + len(config.value) + 8 for topic in internal for config in topic.topic_configs)
        size += sum(
            2 * len(group.source_topics) + 2 * len(group.repartition_source_topics) + 8
            for group in each.copartition_groups
        )
    return size


def _group_for(groups: Groups, command: StreamsHeartbeat, limits: StreamsLimits) -> StreamsGroup | None:
    """The group a heartbeat is for; None if it is to be made, perhaps in place of an empty classic group."""
    group_id = command.group_id
    found = groups.groups.get(group_id)
    if isinstance(found, StreamsGroup):
        if len(found.members) >= limits.members_max and command.member_id not in found.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limits.members_max} members.",
            )
        return found
    if found is None and command.member_epoch != JOINING_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    may_become = isinstance(found, ClassicGroup) and found.is_empty() and command.member_epoch == JOINING_EPOCH
    if found is not None and not may_become:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return None


def _member_for(group: StreamsGroup | None, command: StreamsHeartbeat) -> StreamsMember | None:
    """The member a heartbeat is from; None if it is new. KafkaError if it may not go on as it is."""
    if group is None:
        return None
    if command.member_epoch == JOINING_EPOCH:
        member = group.members.get(command.member_id)
    else:
        member = group.require(command.member_id)
    if member is not None:
        _check_epoch(member, command)
        check_state(member, command.owned)
    return member


def _check_epoch(member: StreamsMember, command: StreamsHeartbeat) -> None:
    """KafkaError unless a member is in its epoch, or in the one before and just did not hear of the new one."""
    epoch = command.member_epoch
    if epoch in {JOINING_EPOCH, member.member_epoch}:
        return
    has_only_its_own = command.owned is not None and command.owned.is_within(member.assigned)
    if epoch < member.member_epoch and epoch == member.previous_member_epoch and has_only_its_own:
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


# --- topology


def _ground(
    metadata: Metadata, group: StreamsGroup | None, command: StreamsHeartbeat, limits: StreamsLimits
) -> _Ground:
    """The topology, and what it comes to now; worked out again only if one of its topics has changed."""
    topology = _topology_for(group, command)
    known = None if group is None or group.topology is None else group
    names = tuple(dict.fromkeys(required_topics(topology))) if known is None else known.required_topics
    seen = tuple(_seen(name, metadata) for name in names)
    if known is not None and known.configured is not None and seen == known.topics_seen:
        return _Ground(
            topology=topology, configured=known.configured, topics_seen=seen, metadata_hash=known.metadata_hash
        )
    return _Ground(
        topology=topology,
        configured=configure(topology, metadata, limits),
        topics_seen=seen,
        metadata_hash=metadata_hash(names, metadata),
    )


def _seen(name: str, metadata: Metadata) -> tuple[UUID, int] | None:
    topic = metadata.topics.get(name)
    return None if topic is None else (topic.topic_id, len(topic.partitions))


def _topology_for(group: StreamsGroup | None, command: StreamsHeartbeat) -> StreamsGroupTopologyValue:
    """The group's topology, which the first member brings; KafkaError if one comes with another."""
    known = None if group is None else group.topology
    told = command.topology
    if known is None:
        if told is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has no topology.")
        return told
    if told is not None and told.epoch >= known.epoch and not are_same(told, known):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _check_tasks(configured: ConfiguredTopology, owned: Tasks | None) -> None:
    """KafkaError if a member says that it has a task that the topology does not have."""
    for tasks in owned.by_role if owned is not None and configured.is_ready else ():
        for subtopology, partitions in tasks.items():
            count = configured.task_counts.get(subtopology)
            if count is None:
                sentence = f"Subtopology {subtopology} does not exist in the topology."
                raise KafkaError(ErrorCode.INVALID_REQUEST, sentence)
            wrong = next((partition for partition in sorted(partitions) if not 0 <= partition < count), None)
            if wrong is not None:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {wrong} for subtopology {subtopology} is invalid. "
                    f"Number of tasks for this subtopology: {count}",
                )


# --- what a heartbeat changes


def _noted(
    groups: Groups,
    command: StreamsHeartbeat,
    old: StreamsMember | None,
    ground: _Ground,
    limits: StreamsLimits,
    outcome: Outcome,
) -> StreamsGroup:
    """Write down what is new of the member, its topology and topics, and raise the epoch if anything is."""
    group_id = command.group_id
    classic = groups.groups.get(group_id)
    if isinstance(classic, ClassicGroup):
        for key, value in classic.tombstones():
            groups.emit(outcome, key, value)
    updated = _as_told(old or StreamsMember(member_id=command.member_id), command)
    if updated != old:
        emit_member(groups, group_id, updated, outcome)
    group = groups.groups[group_id]
    assert isinstance(group, StreamsGroup)
    if group.topology is None:
        groups.emit(outcome, StreamsGroupTopologyKey(group_id=group_id), ground.topology)
    group.configured, group.topics_seen = ground.configured, ground.topics_seen
    now = (ground.metadata_hash, ground.validated_epoch, limits.assignment_configs)
    if updated != old or now != (group.metadata_hash, group.validated_topology_epoch, group.assignment_configs):
        raise_epoch(
            groups,
            group,
            outcome,
            metadata_hash=ground.metadata_hash,
            validated_topology_epoch=ground.validated_epoch,
            configs=limits.assignment_configs,
        )
    return group


def _as_told(member: StreamsMember, command: StreamsHeartbeat) -> StreamsMember:
    """The member with what it says of itself."""
    timeout_ms = command.rebalance_timeout_ms
    return replace(
        member,
        rack_id=command.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        topology_epoch=member.topology_epoch if command.topology is None else command.topology.epoch,
        client_id=command.client_id,
        client_host=command.client_host,
        process_id=member.process_id if command.process_id is None else command.process_id,
        user_endpoint=command.user_endpoint or member.user_endpoint,
        client_tags=member.client_tags if command.client_tags is None else tuple(sorted(command.client_tags)),
    )


# --- the answer


def _answer(
    groups: Groups,
    group: StreamsGroup,
    command: StreamsHeartbeat,
    old: StreamsMember | None,
    member: StreamsMember,
    delay: Status | None,
    limits: StreamsLimits,
) -> StreamsHeartbeatAnswer:
    has_changed = old is None or member.assigned != old.assigned
    # One who joins knows nothing; one who says that it has other tasks may not have heard the last answer.
    is_unsure = command.member_epoch == JOINING_EPOCH or command.owned not in (None, member.assigned)
    if (has_changed or command.member_epoch == JOINING_EPOCH) and member.user_endpoint is not None:
        group.endpoint_epoch += 1
    configured = group.configured
    assert configured is not None
    tells_endpoints = group.endpoint_epoch != command.endpoint_epoch
    return StreamsHeartbeatAnswer(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=limits.heartbeat_interval_ms,
        statuses=tuple(_statuses(group, member, delay)),
        tasks=member.assigned if has_changed or is_unsure else None,
        endpoint_epoch=group.endpoint_epoch,
        endpoints=endpoints_of(group, groups.metadata) if tells_endpoints else None,
        missing=configured.missing,
    )


def _statuses(group: StreamsGroup, member: StreamsMember, delay: Status | None) -> Iterable[Status]:
    assert group.topology is not None
    assert group.configured is not None
    if member.topology_epoch < group.topology.epoch:
        yield Status(
            code=StatusCode.STALE_TOPOLOGY,
            detail=f"The member's topology epoch {member.topology_epoch} is behind "
            f"the group's topology epoch {group.topology.epoch}.",
        )
    if delay is not None:
        yield delay
    if group.configured.fault is not None:
        yield group.configured.fault
    if group.shutdown_requested_by is not None:
        yield Status(
            code=StatusCode.SHUTDOWN_APPLICATION,
            detail=f"Streams group member {group.shutdown_requested_by} encountered a fatal error and requested "
            "a shutdown for the entire application.",
        )


# --- leave


def _leave(groups: Groups, command: StreamsHeartbeat, token: Token) -> Outcome:
    """Strike a member off; it may ask all others to stop, too."""
    group = _require_group(groups, command.group_id)
    member = group.require(command.member_id)
    if command.is_shutting_down and group.shutdown_requested_by is None:
        group.shutdown_requested_by = member.member_id
    outcome = Outcome()
    remove(groups, group, member.member_id, outcome)
    answer = StreamsHeartbeatAnswer(member_id=command.member_id, member_epoch=command.member_epoch)
    return outcome.reply(token, answer)


def _require_group(groups: Groups, group_id: str) -> StreamsGroup:
    group = groups.find(group_id)
    if not isinstance(group, StreamsGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return group


# --- describe


def describe(groups: Groups, group_id: str, token: Token, now_ms: int) -> Outcome:
    """Tell an administrator about a streams group; KafkaError GROUP_ID_NOT_FOUND for one of another kind, too."""
    del now_ms
    group = _require_group(groups, group_id)
    topology = group.topology or StreamsGroupTopologyValue()
    configured = group.configured
    subtopologies: Iterable[Subtopology] = topology.subtopologies
    if configured is not None and configured.is_ready:
        subtopologies = configured.subtopologies.values()
    described = DescribedStreamsGroup(
        group_id=group_id,
        state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology_epoch=topology.epoch,
        subtopologies=tuple(sorted(subtopologies, key=lambda each: each.subtopology_id)),
        members=tuple((member, group.target_of(member_id)) for member_id, member in group.members.items()),
    )
    return Outcome().reply(token, described)


# --- after the log was read


def loaded(groups: Groups, now_ms: int) -> Outcome:
    """The log has been read: every member has its session timeout anew."""
    outcome = Outcome()
    for group in tuple(groups.groups.values()):
        if not isinstance(group, StreamsGroup):
            continue
        limits = limits_of(groups, group.group_id)
        for member_id, member in group.members.items():
            expect_heartbeat(group, member_id, limits.session_timeout_ms, outcome, now_ms)
            if member.state is MemberState.UNREVOKED_TASKS:
                expect_revocation(group, member_id, outcome, now_ms)
    return outcome
