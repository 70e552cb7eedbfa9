"""The way to the share coordinator, where the delivery state of share partitions is kept: here or on another broker.

A coordinator that moves or loads is asked again for a while, so that members do not hear of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from headrace.broker import share_coordinator, share_coordinator_link
from headrace.broker.coordinators.leaders import NO_LEADER
from headrace.cores.share_state import coordinator_key
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import LinkBroken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headrace.broker.broker import Broker
    from headrace.cores.share_state import Initialize, SharePartitionId, ShareState, Write

ResultT = TypeVar("ResultT")

TRIES_MAX = 8
RETRY_FIRST_S = 0.05
RETRY_MAX_S = 4.0
"""About ten seconds in all: as long as it takes to notice that a broker is gone, and another to take over."""

_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Answers after which asking again helps."""

_TOLD_AS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_ID: ErrorCode.UNKNOWN_TOPIC_ID,
}
"""What a share consumer hears when the share coordinator refused its partition's leader."""


async def initialize(broker: Broker, command: Initialize) -> None:
    """Begin the state of a share partition."""
    await _ask(
        broker,
        command.partition,
        lambda: share_coordinator.initialize(broker, command),
        lambda node_id: share_coordinator_link.initialize(broker, node_id, command),
    )


async def read(broker: Broker, partition: SharePartitionId, leader_epoch: int) -> ShareState:
    """What a new leader takes over."""
    return await _ask(
        broker,
        partition,
        lambda: share_coordinator.read(broker, partition, leader_epoch),
        lambda node_id: share_coordinator_link.read(broker, node_id, partition, leader_epoch),
    )


async def read_summary(broker: Broker, partition: SharePartitionId) -> ShareState | None:
    """Where a share partition stands."""
    return await _ask(
        broker,
        partition,
        lambda: share_coordinator.read_summary(broker, partition),
        lambda node_id: share_coordinator_link.read_summary(broker, node_id, partition),
    )


async def write(broker: Broker, command: Write, is_newest: Callable[[], bool]) -> None:
    """Have it written down what became of some records; not tried again once something newer has been."""
    await _ask(
        broker,
        command.partition,
        lambda: share_coordinator.write(broker, command),
        lambda node_id: share_coordinator_link.write(broker, node_id, command),
        is_newest,
    )


async def delete(broker: Broker, partition: SharePartitionId) -> None:
    """Have a share partition forgotten."""
    await _ask(
        broker,
        partition,
        lambda: share_coordinator.delete(broker, partition),
        lambda node_id: share_coordinator_link.delete(broker, node_id, partition),
    )


async def _ask(
    broker: Broker,
    partition: SharePartitionId,
    here: Callable[[], Awaitable[ResultT]],
    there: Callable[[int], Awaitable[ResultT]],
    may_repeat: Callable[[], bool] = lambda: True,
) -> ResultT:
    """Ask the coordinator wherever it is, and again while it is on the move."""
    pause_s = RETRY_FIRST_S
    for left in reversed(range(TRIES_MAX)):
        try:
            return await _try(broker, partition, here, there)
        except KafkaError as error:
            if not left or error.code not in _PASSING or broker.share.is_stopped:
                raise
            await broker.share.pause(pause_s)
            if not may_repeat():
                raise
        pause_s = min(2 * pause_s, RETRY_MAX_S)
    raise AssertionError("the last try returns or raises")


async def _try(
    broker: Broker,
    partition: SharePartitionId,
    here: Callable[[], Awaitable[ResultT]],
    there: Callable[[int], Awaitable[ResultT]],
) -> ResultT:
    coordinator = broker.share_state
    await coordinator.ensure_topic()
    key = coordinator_key(partition)
    if coordinator.is_here(key):
        return await here()
    leader = coordinator.leader_for(key)
    if leader == NO_LEADER:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    try:
        return await there(leader)
    except LinkBroken as broken:
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"The share coordinator: {broken}") from broken


def told_to_consumers(error: KafkaError) -> KafkaError:
    """The error as a share consumer knows what to do about it."""
    return KafkaError(_TOLD_AS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
