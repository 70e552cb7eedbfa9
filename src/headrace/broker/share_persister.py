"""The way to the share coordinator, where the delivery state of share partitions is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.share_state import coordinator_key
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.broker import Broker
    from headrace.cores.outcome import Outcome, Token
    from headrace.cores.share_state import Initialize, SharePartitionId, ShareState, ShareStates, Write

_TOLD_AS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a share consumer hears when the share coordinator refused its partition's leader."""


async def ask_share_coordinator(
    broker: Broker, partition: SharePartitionId, step: Callable[[ShareStates, Token, int], Outcome]
) -> Any:
    """Take a step at the coordinator of a share partition, which is made if there is none yet."""
    await broker.share_state.ensure_topic()
    shard = broker.share_state.shard_for(coordinator_key(partition))
    return await shard.ask(lambda token, now_ms: step(shard.core, token, now_ms))


async def initialize(broker: Broker, command: Initialize) -> None:
    """Begin the state of a share partition."""
    await ask_share_coordinator(
        broker, command.partition, lambda core, token, now_ms: core.initialize(command, token, now_ms)
    )


async def read(broker: Broker, partition: SharePartitionId, leader_epoch: int) -> ShareState:
    """What a new leader takes over."""
    state: ShareState = await ask_share_coordinator(
        broker, partition, lambda core, token, now_ms: core.read(partition, leader_epoch, token, now_ms)
    )
    return state


async def read_summary(broker: Broker, partition: SharePartitionId) -> ShareState | None:
    """Where a share partition stands."""
    state: ShareState | None = await ask_share_coordinator(
        broker, partition, lambda core, token, _: core.read_summary(partition, token)
    )
    return state


async def write(broker: Broker, command: Write) -> None:
    """Have it written down what became of some records."""
    await ask_share_coordinator(
        broker, command.partition, lambda core, token, now_ms: core.write(command, token, now_ms)
    )


async def delete(broker: Broker, partition: SharePartitionId) -> None:
    """Have a share partition forgotten."""
    await ask_share_coordinator(broker, partition, lambda core, token, _: core.delete(partition, token))


def told_to_consumers(error: KafkaError) -> KafkaError:
    """The error as a share consumer knows what to do about it."""
    return KafkaError(_TOLD_AS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
