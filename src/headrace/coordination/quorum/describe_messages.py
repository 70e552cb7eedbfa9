"""DescribeQuorum (55) as the core and the wire have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.coordination.quorum.wire_terms import PARTITION, directory_on_wire, endpoints_on_wire, only_partition
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft import messages as core
from headrace.model.errors import ErrorCode
from headrace.wire.messages import describe_quorum as wire

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = -1


def request_to_wire() -> wire.DescribeQuorumRequest:
    """The question about the one partition there is."""
    partition = wire.RequestPartitionData(partition_index=PARTITION)
    return wire.DescribeQuorumRequest(
        topics=(wire.RequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),)
    )


def request_from_wire(message: wire.DescribeQuorumRequest) -> core.DescribeQuorumRequest | None:
    """The question; None if it is about something else than the metadata."""
    asked = only_partition(message.topics, lambda topic: topic.topic_name)
    return core.DescribeQuorumRequest() if asked is not None and asked.partition_index == PARTITION else None


def unknown_partitions(message: wire.DescribeQuorumRequest) -> wire.DescribeQuorumResponse:
    """The answer to a question about other partitions: they are unknown, each of them."""
    code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return wire.DescribeQuorumResponse(
        topics=tuple(
            wire.ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    wire.ResponsePartitionData(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ),
            )
            for topic in message.topics
        )
    )


def response_to_wire(
    response: core.DescribeQuorumResponse, time_of_day: Callable[[int], int]
) -> wire.DescribeQuorumResponse:
    """The quorum as its leader sees it; `time_of_day` is that of a time of the core's clock."""

    def state(status: core.ReplicaStatus) -> wire.ReplicaState:
        return wire.ReplicaState(
            replica_id=status.key.id,
            replica_directory_id=directory_on_wire(status.key),
            log_end_offset=status.end_offset,
            last_fetch_timestamp=_told(status.last_fetch_ms, time_of_day),
            last_caught_up_timestamp=_told(status.last_caught_up_ms, time_of_day),
        )

    partition = wire.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=int(response.error),
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        high_watermark=response.high_watermark,
        current_voters=tuple(state(status) for status in response.voters),
        observers=tuple(state(status) for status in response.observers),
    )
    return wire.DescribeQuorumResponse(
        topics=(wire.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        nodes=tuple(
            wire.Node(node_id=status.key.id, listeners=endpoints_on_wire(status.endpoints, wire.Listener))
            for status in response.voters
        ),
    )


def _told(time_ms: int, time_of_day: Callable[[int], int]) -> int:
    return UNKNOWN if time_ms < 0 else time_of_day(time_ms)


def high_watermark_of(message: wire.DescribeQuorumResponse) -> int | None:
    """How much is committed, if the answer is a leader's that knows."""
    told = only_partition(message.topics, lambda topic: topic.topic_name)
    if told is None or told.error_code or message.error_code or told.high_watermark < 0:
        return None
    committed: int = told.high_watermark
    return committed
