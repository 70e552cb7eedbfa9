"""The share coordinator on this broker: steps at the shard that keeps the delivery state of a share partition.

KafkaError with NOT_COORDINATOR where that shard is another broker's; `share_persister` finds the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.share_state import coordinator_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.broker import Broker
    from headrace.cores.outcome import Outcome, Token
    from headrace.cores.share_state import Initialize, SharePartitionId, ShareState, ShareStates, Write


async def _step(broker: Broker, partition: SharePartitionId, step: Callable[[ShareStates, Token, int], Outcome]) -> Any:
    """Take a step at the coordinator of a share partition, which is made if there is none yet."""
    await broker.share_state.ensure_topic()
    shard = broker.share_state.shard_for(coordinator_key(partition))
    return await shard.ask(lambda token, now_ms: step(shard.core, token, now_ms))


async def _look(broker: Broker, partition: SharePartitionId, step: Callable[[ShareStates, Token, int], Outcome]) -> Any:
    """As `_step`, for a step that writes nothing."""
    await broker.share_state.ensure_topic()
    shard = broker.share_state.shard_for(coordinator_key(partition))
    return await shard.look(lambda token, now_ms: step(shard.core, token, now_ms))


async def initialize(broker: Broker, command: Initialize) -> None:
    """Begin the state of a share partition."""
    await _step(broker, command.partition, lambda core, token, now_ms: core.initialize(command, token, now_ms))


async def read(broker: Broker, partition: SharePartitionId, leader_epoch: int) -> ShareState:
    """What a new leader takes over."""
    state: ShareState = await _step(
        broker, partition, lambda core, token, now_ms: core.read(partition, leader_epoch, token, now_ms)
    )
    return state


async def read_summary(broker: Broker, partition: SharePartitionId) -> ShareState | None:
    """Where a share partition stands."""
    state: ShareState | None = await _look(
        broker, partition, lambda core, token, _: core.read_summary(partition, token)
    )
    return state


async def write(broker: Broker, command: Write) -> None:
    """Have it written down what became of some records."""
    broker.share.prune_later()
    await _step(broker, command.partition, lambda core, token, now_ms: core.write(command, token, now_ms))


async def delete(broker: Broker, partition: SharePartitionId) -> None:
    """Have a share partition forgotten."""
    await _step(broker, partition, lambda core, token, _: core.delete(partition, token))
