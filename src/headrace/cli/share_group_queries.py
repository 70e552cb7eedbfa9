"""What tools ask a cluster about share groups (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.group_queries import (
    GroupView,
    MemberView,
    ask_for_group,
    by_topic,
    check,
    coordinator,
    places_of,
)
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.client.cluster import Cluster

    Place = tuple[str, int]

SHARE_GROUP_DESCRIBE, DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = 77, 90, 91, 92
TYPES_OF_SHARE = ("Share",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStart:
    """Where a share group stands in a partition; None for what is not known."""

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


async def describe_share_group(cluster: Cluster, group_id: str) -> GroupView:
    """A share group; KafkaError if there is none."""
    return await cluster.persist(lambda: _describe(cluster, group_id))


async def _describe(cluster: Cluster, group_id: str) -> GroupView:
    from headrace.wire.messages.share_group_describe import ShareGroupDescribeRequest

    request = ShareGroupDescribeRequest(group_ids=(group_id,))
    answer, _ = await ask_for_group(cluster, group_id, SHARE_GROUP_DESCRIBE, request)
    (described,) = answer.groups
    check(described.error_code, described.error_message)
    members = [
        MemberView(
            member_id=one.member_id,
            instance_id=None,
            client_id=one.client_id,
            host=one.client_host,
            assignment=places_of(one.assignment),
            epoch=one.member_epoch,
        )
        for one in described.members
    ]
    return GroupView(
        group_id=group_id,
        state=described.group_state,
        coordinator=await coordinator(cluster, group_id),
        assignor=described.assignor_name,
        epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


async def share_starts(cluster: Cluster, group_id: str) -> dict[Place, ShareStart]:
    """Where a share group stands in every partition it has to do with."""
    return await cluster.persist(lambda: _share_starts(cluster, group_id))


async def _share_starts(cluster: Cluster, group_id: str) -> dict[Place, ShareStart]:
    from headrace.wire.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )

    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    answer, _ = await ask_for_group(cluster, group_id, DESCRIBE_OFFSETS, request)
    (found,) = answer.groups
    check(found.error_code, found.error_message)
    nothing = ShareStart(start_offset=None, leader_epoch=None, lag=None)
    return {
        (topic.topic_name, one.partition_index): nothing
        if one.start_offset < 0
        else ShareStart(
            start_offset=one.start_offset,
            leader_epoch=None if one.leader_epoch < 0 else one.leader_epoch,
            lag=None if one.lag < 0 else one.lag,
        )
        for topic in found.topics
        for one in topic.partitions
        if not one.error_code
    }


async def alter_share_starts(cluster: Cluster, group_id: str, offsets: Mapping[Place, int]) -> None:
    """Let an empty share group go on elsewhere; KafkaError with Kafka's sentence if it cannot be."""
    await cluster.persist(lambda: _alter(cluster, group_id, offsets))


async def _alter(cluster: Cluster, group_id: str, offsets: Mapping[Place, int]) -> None:
    from headrace.wire.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
    )

    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offsets[topic, index])
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(offsets).items()
        ),
    )
    answer, _ = await ask_for_group(cluster, group_id, ALTER_OFFSETS, request)
    failed = {
        f"{topic.topic_name}-{one.partition_index}": one.error_code
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code
    }
    if answer.error_code:
        failed = {f"{topic}-{index}": answer.error_code for topic, index in offsets}
    if failed:
        check(
            next(iter(failed.values())),
            f"Failed altering group offsets for the following partitions: [{', '.join(failed)}]",
        )


async def delete_share_starts(cluster: Cluster, group_id: str, topics: Sequence[str]) -> dict[str, KafkaError | None]:
    """Let a share group forget topics; what went wrong by topic, KafkaError if the whole request fails."""
    return await cluster.persist(lambda: _delete(cluster, group_id, topics))


async def _delete(cluster: Cluster, group_id: str, topics: Sequence[str]) -> dict[str, KafkaError | None]:
    from headrace.wire.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
    )

    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics)
    )
    answer, _ = await ask_for_group(cluster, group_id, DELETE_OFFSETS, request)
    check(answer.error_code, answer.error_message)
    return {
        one.topic_name: KafkaError(ErrorCode(one.error_code), one.error_message or "") if one.error_code else None
        for one in answer.responses
    }
