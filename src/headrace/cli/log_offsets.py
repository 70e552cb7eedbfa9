"""What tools ask a cluster about logs: which partitions topics have, who leads them, where they begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headrace.client.cluster import Cluster

    Place = tuple[str, int]

LIST_OFFSETS = 2
LATEST, EARLIEST = -1, -2
NO_LEADER = -1


async def leaders(cluster: Cluster, topics: Iterable[str]) -> dict[Place, int]:
    """The leader of every partition of these topics, NO_LEADER where there is none; KafkaError if one is unknown."""
    wanted = list(dict.fromkeys(topics))
    if not wanted:
        return {}
    metadata = await cluster.metadata(wanted)
    found: dict[Place, int] = {}
    for topic in metadata.topics:
        if topic.error_code:
            raise KafkaError(ErrorCode(topic.error_code), "")
        for partition in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
            found[topic.name or "", partition.partition_index] = partition.leader_id
    return found


async def log_offsets(
    cluster: Cluster, places: Collection[Place], time: int, *, is_committed: bool = False
) -> dict[Place, int]:
    """The offset of each partition at a time, or where it begins or ends; -1 where no record is as late."""
    if not places:
        return {}
    return await cluster.persist(lambda: _log_offsets(cluster, places, time, is_committed=is_committed))


async def _log_offsets(
    cluster: Cluster, places: Collection[Place], time: int, *, is_committed: bool
) -> dict[Place, int]:
    from headrace.cli.group_queries import by_topic
    from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

    led = await leaders(cluster, (topic for topic, _ in places))
    by_leader: dict[int, list[Place]] = {}
    for place in places:
        leader = led.get(place)
        if leader is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "")
        by_leader.setdefault(leader, []).append(place)
    found: dict[Place, int] = {}
    for leader, mine in sorted(by_leader.items()):
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(is_committed),
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=time) for index in indexes),
                )
                for topic, indexes in by_topic(mine).items()
            ),
        )
        answer = await cluster.ask(LIST_OFFSETS, request, node_id=leader)
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    raise KafkaError(ErrorCode(partition.error_code), "")
                found[topic.name, partition.partition_index] = partition.offset
    return found
