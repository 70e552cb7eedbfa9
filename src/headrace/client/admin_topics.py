"""Asking and changing a cluster: topics, partitions, records and the brokers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.client.admin_values import (
    BrokerDescription,
    ClusterDescription,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
)
from headrace.client.answers import check, check_all, partitions_of
from headrace.client.fault import BadOption
from headrace.client.records import OffsetAndTimestamp, TopicPartition, place_of
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

LIST_OFFSETS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS, DESCRIBE_CLUSTER = 2, 19, 20, 21, 37, 60
_STATES_FIRST = 6
_CONSUMER = -1
TIMES = {"latest": -1, "earliest": -2, "max_timestamp": -3}
LEVELS = {"read_uncommitted": 0, "read_committed": 1}


class TopicAdmin:
    """The part of the admin client that is about topics."""

    _cluster: Cluster
    _timeout_ms: int

    # --- topics

    async def create_topics(
        self, new_topics: Iterable[NewTopic | str], timeout_ms: int | None = None, validate_only: bool = False
    ) -> dict[str, UUID]:
        """Create topics; gives their ids."""
        request = CreateTopicsRequest(
            topics=tuple(_creatable(topic) for topic in new_topics),
            timeout_ms=timeout_ms or self._timeout_ms,
            validate_only=validate_only,
        )
        answer = await self._cluster.ask(CREATE_TOPICS, request)
        check_all((one.name, one) for one in answer.topics)
        return {one.name: one.topic_id for one in answer.topics}

    async def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> None:
        """Delete topics, and their records with them."""
        names = tuple(topics)
        channel = await self._cluster.any_channel()
        version = channel.version_of(DELETE_TOPICS)
        wait_ms = timeout_ms or self._timeout_ms
        if version >= _STATES_FIRST:
            request = DeleteTopicsRequest(
                topics=tuple(DeleteTopicState(name=name) for name in names), timeout_ms=wait_ms
            )
        else:
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=wait_ms)
        answer = await channel.ask(DELETE_TOPICS, request, version=version)
        check_all((one.name or "", one) for one in answer.responses)

    async def list_topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(topic.name or "" for topic in (await self._cluster.metadata()).topics)

    async def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicDescription]:
        """What there is to know about some topics, or about all."""
        found = (await self._cluster.metadata(topics)).topics
        check_all((one.name or "", one) for one in found)
        return [topic_description(one) for one in found]

    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Give topics more partitions."""
        request = CreatePartitionsRequest(
            topics=tuple(_more(name, wanted) for name, wanted in topic_partitions.items()),
            timeout_ms=timeout_ms or self._timeout_ms,
            validate_only=validate_only,
        )
        answer = await self._cluster.ask(CREATE_PARTITIONS, request)
        check_all((one.name, one) for one in answer.results)

    # --- what is in partitions

    async def list_offsets(
        self, specs: Mapping[Any, int | str], isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Offsets by partition: "earliest", "latest", "max_timestamp", or the first at or after a time in ms."""
        wanted = {place_of(place): _time(spec) for place, spec in specs.items()}

        async def attempt() -> dict[TopicPartition, OffsetAndTimestamp]:
            found: dict[TopicPartition, OffsetAndTimestamp] = {}
            for node_id, places in (await self._by_leader(wanted)).items():
                request = ListOffsetsRequest(
                    replica_id=_CONSUMER,
                    isolation_level=LEVELS[isolation_level],
                    topics=tuple(
                        ListOffsetsTopic(
                            name=topic,
                            partitions=tuple(
                                ListOffsetsPartition(partition_index=n, timestamp=wanted[TopicPartition(topic, n)])
                                for n in numbers
                            ),
                        )
                        for topic, numbers in _by_topic(places).items()
                    ),
                    timeout_ms=self._timeout_ms,
                )
                for place, one in partitions_of(await self._cluster.ask(LIST_OFFSETS, request, node_id=node_id)):
                    check(f"{place.topic}-{place.partition}", one)
                    found[place] = OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
            return found

        return await self._cluster.persist(attempt)

    async def delete_records(
        self, records_to_delete: Mapping[Any, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete what lies before an offset, -1 for everything; gives where each partition begins now."""
        wanted = {place_of(place): offset for place, offset in records_to_delete.items()}

        async def attempt() -> dict[TopicPartition, int]:
            found: dict[TopicPartition, int] = {}
            for node_id, places in (await self._by_leader(wanted)).items():
                request = DeleteRecordsRequest(
                    topics=tuple(
                        DeleteRecordsTopic(
                            name=topic,
                            partitions=tuple(
                                DeleteRecordsPartition(partition_index=n, offset=wanted[TopicPartition(topic, n)])
                                for n in numbers
                            ),
                        )
                        for topic, numbers in _by_topic(places).items()
                    ),
                    timeout_ms=timeout_ms or self._timeout_ms,
                )
                for place, one in partitions_of(await self._cluster.ask(DELETE_RECORDS, request, node_id=node_id)):
                    check(f"{place.topic}-{place.partition}", one)
                    found[place] = one.low_watermark
            return found

        return await self._cluster.persist(attempt)

    async def _by_leader(self, places: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        wanted = list(places)
        topics = await self.describe_topics({place.topic for place in wanted})
        leaders = {TopicPartition(one.name, part.partition): part.leader for one in topics for part in one.partitions}
        found: dict[int, list[TopicPartition]] = {}
        for place in wanted:
            leader = leaders.get(place)
            if leader is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{place.topic} has no partition {place.partition}."
                )
            if leader < 0:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place.topic}-{place.partition} has no leader now.")
            found.setdefault(leader, []).append(place)
        return found

    # --- brokers

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster and its brokers."""
        answer = await self._cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest())
        check("describe_cluster", answer)
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller_id=answer.controller_id,
            brokers=tuple(
                BrokerDescription(node_id=one.broker_id, host=one.host, port=one.port, rack=one.rack)
                for one in answer.brokers
            ),
        )


def _creatable(topic: NewTopic | str) -> CreatableTopic:
    wanted = NewTopic(topic) if isinstance(topic, str) else topic
    return CreatableTopic(
        name=wanted.name,
        num_partitions=wanted.num_partitions,
        replication_factor=wanted.replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in wanted.replica_assignments.items()
        ),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in wanted.topic_configs.items()),
    )


def _more(name: str, wanted: NewPartitions | int) -> CreatePartitionsTopic:
    plan = NewPartitions(wanted) if isinstance(wanted, int) else wanted
    where = plan.new_assignments
    return CreatePartitionsTopic(
        name=name,
        count=plan.total_count,
        assignments=None
        if where is None
        else tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in where),
    )


def topic_description(topic: Any) -> TopicDescription:
    """A topic of an answer about metadata."""
    return TopicDescription(
        name=topic.name or "",
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            PartitionDescription(
                partition=one.partition_index,
                leader=one.leader_id,
                leader_epoch=one.leader_epoch,
                replicas=tuple(one.replica_nodes),
                isr=tuple(one.isr_nodes),
                offline_replicas=tuple(one.offline_replicas),
            )
            for one in sorted(topic.partitions, key=lambda part: part.partition_index)
        ),
    )


def _time(spec: int | str) -> int:
    if isinstance(spec, int):
        return spec
    if spec not in TIMES:
        raise BadOption(f"'{spec}' is no point in time", f"Give milliseconds, or one of {', '.join(TIMES)}.")
    return TIMES[spec]


def _by_topic(places: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(place.topic, []).append(place.partition)
    return found
