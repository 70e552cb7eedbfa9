"""Asking and changing a cluster: consumer groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.client.admin_values import GroupDescription, GroupListing, MemberDescription
from headrace.client.answers import check, partitions_of
from headrace.client.cluster import GROUP
from headrace.client.fault import NotServed
from headrace.client.records import OffsetAndMetadata, TopicPartition, place_of
from headrace.cores.groups.consumer_protocol import MalformedConsumerProtocol, read_assignment
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

OFFSET_COMMIT, OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS, OFFSET_DELETE = 8, 9, 15, 16, 42, 47
CONSUMER_GROUP_DESCRIBE = 69
_NAMES_LAST = 9
"""From the next version on, offsets are committed and fetched by topic id."""
_SEVERAL_GROUPS_FIRST = 8
_NOT_OF_THIS_TYPE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class GroupAdmin:
    """The part of the admin client that is about groups."""

    _cluster: Cluster

    # --- groups

    async def list_groups(
        self, states_filter: Iterable[str] = (), types_filter: Iterable[str] = ()
    ) -> list[GroupListing]:
        """All groups, or those in some states or of some types."""
        request = ListGroupsRequest(states_filter=tuple(states_filter), types_filter=tuple(types_filter))
        found: dict[str, GroupListing] = {}
        for node_id in await self._cluster.brokers():
            answer = await self._ask(LIST_GROUPS, request, node_id)
            for one in answer.groups:
                found[one.group_id] = GroupListing(
                    group_id=one.group_id,
                    protocol_type=one.protocol_type,
                    state=one.group_state,
                    group_type=one.group_type,
                )
        return [found[name] for name in sorted(found)]

    async def _ask(self, api_key: int, request: Any, node_id: int) -> Any:
        async def attempt() -> Any:
            answer = await self._cluster.ask(api_key, request, node_id=node_id)
            check("list_groups", answer)
            return answer

        return await self._cluster.persist(attempt)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """Groups with their members, of the classic and of the new protocol."""
        return {group_id: await self._describe_group(group_id) for group_id in group_ids}

    async def _describe_group(self, group_id: str) -> GroupDescription:
        async def attempt() -> GroupDescription:
            try:
                return await self._describe_new(group_id)
            except NotServed:
                return await self._describe_classic(group_id)
            except KafkaError as error:
                if error.code not in _NOT_OF_THIS_TYPE:
                    raise
                return await self._describe_classic(group_id)

        return await self._cluster.persist(attempt)

    async def _describe_new(self, group_id: str) -> GroupDescription:
        request = ConsumerGroupDescribeRequest(group_ids=(group_id,))
        answer = await self._cluster.ask_coordinator(GROUP, group_id, CONSUMER_GROUP_DESCRIBE, request)
        (group,) = answer.groups
        check(f"group {group_id}", group)
        return GroupDescription(
            group_id=group_id,
            group_type="consumer",
            state=group.group_state,
            assignor=group.assignor_name,
            members=tuple(
                MemberDescription(
                    member_id=one.member_id,
                    group_instance_id=one.instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    assignment=frozenset(
                        TopicPartition(topic.topic_name, number)
                        for topic in one.assignment.topic_partitions
                        for number in topic.partitions
                    ),
                )
                for one in group.members
            ),
        )

    async def _describe_classic(self, group_id: str) -> GroupDescription:
        request = DescribeGroupsRequest(groups=(group_id,))
        answer = await self._cluster.ask_coordinator(GROUP, group_id, DESCRIBE_GROUPS, request)
        (group,) = answer.groups
        check(f"group {group_id}", group)
        return GroupDescription(
            group_id=group_id,
            group_type="classic",
            state=group.group_state,
            assignor=group.protocol_data,
            members=tuple(
                MemberDescription(
                    member_id=one.member_id,
                    group_instance_id=one.group_instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    assignment=_assignment(bytes(one.member_assignment)),
                )
                for one in group.members
            ),
        )

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, and their offsets with them."""
        for group_id in group_ids:
            await self._delete(group_id)

    async def _delete(self, group_id: str) -> None:
        async def attempt() -> None:
            request = DeleteGroupsRequest(groups_names=(group_id,))
            answer = await self._cluster.ask_coordinator(GROUP, group_id, DELETE_GROUPS, request)
            for one in answer.results:
                check(f"group {group_id}", one)

        await self._cluster.persist(attempt)

    # --- offsets

    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[Any] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for some partitions or for all it has committed anything for."""
        topics = None if partitions is None else _by_topic({place_of(one): None for one in partitions})

        async def attempt() -> dict[TopicPartition, OffsetAndMetadata]:
            channel = await self._cluster.channel_to(await self._cluster.coordinator_of(GROUP, group_id))
            version = channel.version_of(OFFSET_FETCH, at_most=_NAMES_LAST)
            answer = await channel.ask(OFFSET_FETCH, _fetch_request(group_id, topics, version), version=version)
            group = answer.groups[0] if version >= _SEVERAL_GROUPS_FIRST else answer
            check(f"group {group_id}", group)
            found: dict[TopicPartition, OffsetAndMetadata] = {}
            for place, one in partitions_of(group):
                check(f"{place.topic}-{place.partition}", one)
                if one.committed_offset >= 0:
                    found[place] = OffsetAndMetadata(
                        one.committed_offset, one.metadata or "", one.committed_leader_epoch
                    )
            return found

        return await self._cluster.persist(attempt)

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[Any, int | OffsetAndMetadata]) -> None:
        """Set a group's offsets; it must have no members."""
        chosen = {
            place_of(place): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for place, offset in offsets.items()
        }
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            committed_metadata=offset.metadata,
                        )
                        for number, offset in numbers.items()
                    ),
                )
                for topic, numbers in _by_topic(chosen).items()
            ),
        )

        async def attempt() -> None:
            channel = await self._cluster.channel_to(await self._cluster.coordinator_of(GROUP, group_id))
            version = channel.version_of(OFFSET_COMMIT, at_most=_NAMES_LAST)
            answer = await channel.ask(OFFSET_COMMIT, request, version=version)
            for place, one in partitions_of(answer):
                check(f"{place.topic}-{place.partition}", one)

        await self._cluster.persist(attempt)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[Any]) -> None:
        """Forget what a group has committed for some partitions, which none of its members may be subscribed to."""
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for number in numbers),
                )
                for topic, numbers in _by_topic({place_of(one): None for one in partitions}).items()
            ),
        )

        async def attempt() -> None:
            answer = await self._cluster.ask_coordinator(GROUP, group_id, OFFSET_DELETE, request)
            check(f"group {group_id}", answer)
            for place, one in partitions_of(answer):
                check(f"{place.topic}-{place.partition}", one)

        await self._cluster.persist(attempt)

    # kafka-python's older names for the same.
    list_consumer_groups = list_groups
    describe_consumer_groups = describe_groups
    delete_consumer_groups = delete_groups
    list_consumer_group_offsets = list_group_offsets


def _assignment(raw: bytes) -> frozenset[TopicPartition]:
    """What a classic member holds; a group that is no consumers' has assignments only it can read."""
    if not raw:
        return frozenset()
    try:
        found = read_assignment(raw).partitions
    except MalformedConsumerProtocol:
        return frozenset()
    return frozenset(TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers)


def _by_topic(places: Mapping[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for place, value in places.items():
        found.setdefault(place.topic, {})[place.partition] = value
    return found


def _fetch_request(group_id: str, topics: dict[str, dict[int, Any]] | None, version: int) -> OffsetFetchRequest:
    if version >= _SEVERAL_GROUPS_FIRST:
        wanted = (
            None
            if topics is None
            else tuple(
                OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in topics.items()
            )
        )
        return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=wanted),))
    return OffsetFetchRequest(
        group_id=group_id,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers)) for topic, numbers in topics.items()
        ),
    )
