"""What tools ask a cluster about groups: which there are, who is in them, what they have committed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.client.cluster import GROUP
from headrace.client.fault import NotServed
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from headrace.cli.session import Session
    from headrace.client.cluster import Cluster

    Place = tuple[str, int]

OFFSET_COMMIT, OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS = 8, 9, 15, 16
DELETE_GROUPS, OFFSET_DELETE, CONSUMER_GROUP_DESCRIBE = 42, 47, 69
_NAMES_LAST = 9
"""The last version of OffsetFetch and OffsetCommit that calls topics by name."""
_SEVERAL_GROUPS_FIRST = 8
_TYPES_FIRST = 5
_AT_ONCE = 32
_UPGRADED = {0: False, 1: True}
Result = TypeVar("Result")

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
TYPES = ("Classic", "Consumer", "Share", "Streams")
TYPES_OF_CONSUMERS = ("Consumer", "Classic")
PROTOCOLS_OF_CONSUMERS = ("", "consumer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A group as a list shows it."""

    group_id: str
    protocol: str
    state: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A member of a group; what classic groups do not have is None."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Place, ...]
    target: tuple[Place, ...] = ()
    epoch: int | None = None
    is_upgraded: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, as the tools print it."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}  ({self.node_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group with its members; a classic group has no epochs."""

    group_id: str
    state: str
    coordinator: Node
    assignor: str
    members: tuple[MemberView, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A committed offset."""

    offset: int
    leader_epoch: int | None


class NotOfConsumers(Exception):
    """The group is used for something else, by Kafka Connect for one."""


def obey_timeout(session: Session) -> None:
    """Let --timeout bound every question of this run."""
    from dataclasses import replace

    cluster = session.cluster
    timeout_ms = session.values.number("timeout")
    if timeout_ms is not None:
        bound_s = max(timeout_ms, 1) / 1000
        connect_s = min(cluster.options.connect_timeout_s, bound_s)
        cluster.options = replace(cluster.options, request_timeout_s=bound_s, connect_timeout_s=connect_s)


async def for_each(keys: Iterable[str], work: Callable[[str], Awaitable[Result]]) -> dict[str, Result]:
    """Do the same for every key, a few at once; the first failure ends it."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(key: str) -> Result:
        async with gate:
            return await work(key)

    wanted = list(dict.fromkeys(keys))
    return dict(zip(wanted, await asyncio.gather(*(one(key) for key in wanted)), strict=True))


def check(code: int, message: str | None = None) -> None:
    """Raise what a broker answered, unless it is no error."""
    if code:
        raise KafkaError(ErrorCode(code), message or "")


async def ask_for_group(
    cluster: Cluster, group_id: str, api_key: int, message: Any, *, at_most: int | None = None
) -> tuple[Any, int]:
    """Ask the group's coordinator; gives the answer and the version it is in."""
    channel = await cluster.channel_to(await cluster.coordinator_of(GROUP, group_id))
    version = channel.version_of(api_key, at_most=at_most)
    return await channel.ask(api_key, message, version=version), version


async def coordinator(cluster: Cluster, group_id: str) -> Node:
    """The broker that coordinates a group."""
    node_id = await cluster.coordinator_of(GROUP, group_id)
    host, port = cluster.address_of(node_id)
    return Node(node_id=node_id, host=host, port=port)


# --- which groups there are


async def list_groups(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
    protocols: Sequence[str] = (),
) -> list[Listing]:
    """All groups of these states, types and protocols, in the order Kafka's tools list them."""
    from headrace.cli.java_order import hash_order

    found: dict[str, Listing] = {}
    await cluster.metadata(())
    for node_id in await cluster.brokers():
        for one in await cluster.persist(partial(_groups_of, cluster, node_id, states, types)):
            if not protocols or one.protocol in protocols:
                found[one.group_id] = one
    return [found[group_id] for group_id in hash_order(found)]


async def _groups_of(cluster: Cluster, node_id: int, states: Sequence[str], types: Sequence[str]) -> list[Listing]:
    from headrace.wire.messages.list_groups import ListGroupsRequest

    channel = await cluster.channel_to(node_id)
    version = channel.version_of(LIST_GROUPS)
    # A broker from before the types has classic groups only.
    if version < _TYPES_FIRST and types and "Classic" not in types:
        raise NotServed(f"The broker at {channel.where} does not know types of groups", "It may be too old")
    request = ListGroupsRequest(
        states_filter=tuple(states), types_filter=tuple(types) if version >= _TYPES_FIRST else ()
    )
    answer = await channel.ask(LIST_GROUPS, request, version=version)
    check(answer.error_code)
    return [
        Listing(
            group_id=one.group_id,
            protocol=one.protocol_type,
            state=parse_name(one.group_state, STATES) or "Unknown",
            kind=parse_name(one.group_type, TYPES) or ("" if version < _TYPES_FIRST else "Unknown"),
        )
        for one in answer.groups
    ]


def parse_name(text: str, names: Sequence[str]) -> str | None:
    """One of the names, however its letters are written."""
    return next((name for name in names if name.lower() == text.strip().lower()), None)


# --- who is in them


async def describe_group(cluster: Cluster, group_id: str) -> GroupView:
    """A group of consumers, of the new protocol or of the classic one; KafkaError if there is none."""
    return await cluster.persist(lambda: _describe(cluster, group_id))


async def _describe(cluster: Cluster, group_id: str) -> GroupView:
    from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    try:
        answer, _ = await ask_for_group(
            cluster, group_id, CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=(group_id,))
        )
    except NotServed:
        return await _describe_classic(cluster, group_id, None)
    (described,) = answer.groups
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return await _describe_classic(cluster, group_id, described.error_message)
    check(described.error_code, described.error_message)
    return GroupView(
        group_id=group_id,
        state=described.group_state,
        coordinator=await coordinator(cluster, group_id),
        assignor=described.assignor_name,
        epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
        members=tuple(
            MemberView(
                member_id=one.member_id,
                instance_id=one.instance_id,
                client_id=one.client_id,
                host=one.client_host,
                assignment=places_of(one.assignment),
                target=places_of(one.target_assignment),
                epoch=one.member_epoch,
                is_upgraded=_UPGRADED.get(one.member_type),
            )
            for one in described.members
        ),
    )


def places_of(assignment: Any) -> tuple[Place, ...]:
    """The partitions of an assignment in a description."""
    return tuple((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions)


async def _describe_classic(cluster: Cluster, group_id: str, message: str | None) -> GroupView:
    from headrace.wire.messages.describe_groups import DescribeGroupsRequest

    answer, _ = await ask_for_group(cluster, group_id, DESCRIBE_GROUPS, DescribeGroupsRequest(groups=(group_id,)))
    (described,) = answer.groups
    check(described.error_code, message or described.error_message)
    if described.protocol_type not in PROTOCOLS_OF_CONSUMERS:
        raise NotOfConsumers(f"GroupId {group_id} is not a consumer group ({described.protocol_type}).")
    return GroupView(
        group_id=group_id,
        state=described.group_state,
        coordinator=await coordinator(cluster, group_id),
        assignor=described.protocol_data,
        members=tuple(
            MemberView(
                member_id=one.member_id,
                instance_id=one.group_instance_id,
                client_id=one.client_id,
                host=one.client_host,
                assignment=_embedded(one.member_assignment),
            )
            for one in described.members
        ),
    )


def _embedded(data: bytes) -> tuple[Place, ...]:
    from headrace.cores.groups.consumer_protocol import read_assignment

    if not data:
        return ()
    return tuple((topic, index) for topic, indexes in read_assignment(data).partitions.items() for index in indexes)


# --- committed offsets


async def committed(cluster: Cluster, group_id: str) -> dict[Place, Commit]:
    """Everything a group has committed."""
    return await cluster.persist(lambda: _committed(cluster, group_id))


async def _committed(cluster: Cluster, group_id: str) -> dict[Place, Commit]:
    from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),), group_id=group_id, topics=None
    )
    answer, version = await ask_for_group(cluster, group_id, OFFSET_FETCH, request, at_most=_NAMES_LAST)
    found = answer.groups[0] if version >= _SEVERAL_GROUPS_FIRST else answer
    check(found.error_code)
    return {
        (topic.name, one.partition_index): Commit(
            offset=one.committed_offset,
            leader_epoch=None if one.committed_leader_epoch < 0 else one.committed_leader_epoch,
        )
        for topic in found.topics
        for one in topic.partitions
        if not one.error_code and one.committed_offset >= 0
    }


async def commit(cluster: Cluster, group_id: str, offsets: Mapping[Place, int]) -> None:
    """Set the offsets of a group that has no members; KafkaError with Kafka's sentence if it cannot be."""
    await cluster.persist(lambda: _commit(cluster, group_id, offsets))


async def _commit(cluster: Cluster, group_id: str, offsets: Mapping[Place, int]) -> None:
    from headrace.wire.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    request = OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offsets[topic, index])
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(offsets).items()
        ),
    )
    answer, _ = await ask_for_group(cluster, group_id, OFFSET_COMMIT, request, at_most=_NAMES_LAST)
    failed = {
        f"{topic.name}-{one.partition_index}": one.error_code
        for topic in answer.topics
        for one in topic.partitions
        if one.error_code
    }
    if failed:
        check(
            next(iter(failed.values())),
            f"Failed altering group offsets for the following partitions: [{', '.join(failed)}]",
        )


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Partitions by their topic."""
    found: dict[str, list[int]] = {}
    for topic, index in places:
        found.setdefault(topic, []).append(index)
    return found


# --- taking away


async def delete_group(cluster: Cluster, group_id: str) -> int:
    """Delete a group; gives the error code, 0 if it is gone."""
    from headrace.wire.messages.delete_groups import DeleteGroupsRequest

    async def attempt() -> None:
        answer, _ = await ask_for_group(cluster, group_id, DELETE_GROUPS, DeleteGroupsRequest(groups_names=(group_id,)))
        check(answer.results[0].error_code)

    return await code_of(cluster.persist(attempt))


async def code_of(attempt: Awaitable[object]) -> int:
    """The error an attempt ends in, as a code; 0 if there is none."""
    try:
        await attempt
    except KafkaError as error:
        return int(error.code)
    return 0


async def delete_offsets(cluster: Cluster, group_id: str, places: Iterable[Place]) -> dict[Place, int]:
    """Forget committed offsets; the error code of each partition, KafkaError if the whole request fails."""
    return await cluster.persist(lambda: _delete_offsets(cluster, group_id, list(places)))


async def _delete_offsets(cluster: Cluster, group_id: str, places: Sequence[Place]) -> dict[Place, int]:
    from headrace.wire.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes),
            )
            for topic, indexes in by_topic(places).items()
        ),
    )
    answer, _ = await ask_for_group(cluster, group_id, OFFSET_DELETE, request)
    check(answer.error_code)
    return {(topic.name, one.partition_index): one.error_code for topic in answer.topics for one in topic.partitions}
