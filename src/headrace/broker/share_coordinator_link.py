"""The share coordinator of another broker: the same steps as `share_coordinator`, asked over the wire (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.share_state import NO_COUNT, NO_OFFSET, ShareState
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_state_records import StateBatch
from headrace.wire.messages import delete_share_group_state as deletion
from headrace.wire.messages import initialize_share_group_state as beginning
from headrace.wire.messages import read_share_group_state as reading
from headrace.wire.messages import read_share_group_state_summary as summary
from headrace.wire.messages import write_share_group_state as writing

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.cores.share_state import Initialize, SharePartitionId, Write

PURPOSE = "share"
INITIALIZE, READ, WRITE, DELETE, SUMMARY = 83, 84, 85, 86, 87


async def _ask(broker: Broker, node_id: int, api_key: int, request: Any) -> Any:
    """The one partition's result in the answer; KafkaError if it is one."""
    response = await broker.peers.ask(node_id, api_key, request, purpose=PURPOSE)
    results = [result for topic in response.results for result in topic.partitions]
    if len(results) != 1:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Broker {node_id} answered something else.")
    (result,) = results
    if result.error_code:
        raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
    return result


async def initialize(broker: Broker, node_id: int, command: Initialize) -> None:
    """Begin the state of a share partition."""
    group_id, topic_id, index = command.partition
    one = beginning.PartitionData(partition=index, state_epoch=command.state_epoch, start_offset=command.start_offset)
    topics = (beginning.InitializeStateData(topic_id=topic_id, partitions=(one,)),)
    request = beginning.InitializeShareGroupStateRequest(group_id=group_id, topics=topics)
    await _ask(broker, node_id, INITIALIZE, request)


async def read(broker: Broker, node_id: int, partition: SharePartitionId, leader_epoch: int) -> ShareState:
    """What a new leader takes over."""
    group_id, topic_id, index = partition
    one = reading.PartitionData(partition=index, leader_epoch=leader_epoch)
    topics = (reading.ReadStateData(topic_id=topic_id, partitions=(one,)),)
    request = reading.ReadShareGroupStateRequest(group_id=group_id, topics=topics)
    result: reading.PartitionResult = await _ask(broker, node_id, READ, request)
    batches = tuple(
        StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in result.state_batches
    )
    return _state(result.state_epoch, leader_epoch, result.start_offset, NO_COUNT, batches)


async def read_summary(broker: Broker, node_id: int, partition: SharePartitionId) -> ShareState | None:
    """Where a share partition stands."""
    group_id, topic_id, index = partition
    one = summary.PartitionData(partition=index, leader_epoch=-1)
    topics = (summary.ReadStateSummaryData(topic_id=topic_id, partitions=(one,)),)
    request = summary.ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)
    result: summary.PartitionResult = await _ask(broker, node_id, SUMMARY, request)
    if result.start_offset == NO_OFFSET:
        return None
    return _state(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count, ())


async def write(broker: Broker, node_id: int, command: Write) -> None:
    """Have it written down what became of some records."""
    group_id, topic_id, index = command.partition
    one = writing.PartitionData(
        partition=index,
        state_epoch=command.state_epoch,
        leader_epoch=command.leader_epoch,
        start_offset=command.start_offset,
        delivery_complete_count=command.delivery_complete_count,
        state_batches=tuple(
            writing.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in command.batches
        ),
    )
    topics = (writing.WriteStateData(topic_id=topic_id, partitions=(one,)),)
    await _ask(broker, node_id, WRITE, writing.WriteShareGroupStateRequest(group_id=group_id, topics=topics))


async def delete(broker: Broker, node_id: int, partition: SharePartitionId) -> None:
    """Have a share partition forgotten."""
    group_id, topic_id, index = partition
    topics = (deletion.DeleteStateData(topic_id=topic_id, partitions=(deletion.PartitionData(partition=index),)),)
    await _ask(broker, node_id, DELETE, deletion.DeleteShareGroupStateRequest(group_id=group_id, topics=topics))


def _state(
    state_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: tuple[StateBatch, ...],
) -> ShareState:
    """A state as far as the wire tells it; the rest is the coordinator's own."""
    return ShareState(
        snapshot_epoch=0,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        create_timestamp=-1,
        write_timestamp=-1,
        batches=batches,
        update_count=0,
    )
