"""What takes both coordinators of a share group: beginning, setting and forgetting its partitions' delivery states.

The group coordinator knows which partitions a group reads, the share coordinator what became of their records.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from headrace.broker import share_persister
from headrace.cores.groups import share_offsets
from headrace.cores.groups.share_group import ShareGroup
from headrace.cores.share_state import Initialize
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.cores.groups.shard import Groups
    from headrace.cores.groups.share_commands import StateBegin
    from headrace.cores.outcome import Outcome, Token

logger = logging.getLogger(__name__)

TopicPartition = tuple["UUID", int]

ATTEMPTS_AT_ONCE = 100
"""Share partitions whose states are begun or forgotten at a time."""


async def ask_group(broker: Broker, group_id: str, step: Callable[[Groups, Token, int], Outcome]) -> Any:
    """Take a step at a group's coordinator."""
    shard = broker.groups.shard_for(group_id)
    return await shard.ask(lambda token, now_ms: step(shard.core, token, now_ms))


async def look_at_group(broker: Broker, group_id: str, step: Callable[[Groups, Token, int], Outcome]) -> Any:
    """Take a step at a group's coordinator that writes nothing."""
    shard = broker.groups.shard_for(group_id)
    return await shard.look(lambda token, now_ms: step(shard.core, token, now_ms))


async def begin_states(broker: Broker, group_id: str, begin: StateBegin) -> dict[TopicPartition, KafkaError]:
    """Have the share coordinator begin states, and the group note what came of it; the partitions where it failed."""
    wanted = [
        Initialize(partition=(group_id, topic_id, index), state_epoch=begin.state_epoch, start_offset=offset)
        for topic_id, offsets in begin.start_offsets.items()
        for index, offset in offsets.items()
    ]
    results = await _attempts(_begin(broker, one) for one in wanted)
    done: dict[UUID, list[int]] = {}
    failed: dict[UUID, list[int]] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for one, error in zip(wanted, results, strict=True):
        _, topic_id, index = one.partition
        (done if error is None else failed).setdefault(topic_id, []).append(index)
        if error is not None:
            errors[topic_id, index] = error
    if failed:
        logger.warning("share_states_not_begun group=%s partitions=%s", group_id, failed)
        await ask_group(
            broker, group_id, lambda groups, token, _: share_offsets.not_begun(groups, group_id, failed, token)
        )
    if done:
        await ask_group(broker, group_id, lambda groups, token, _: share_offsets.begun(groups, group_id, done, token))
    return errors


async def _begin(broker: Broker, command: Initialize) -> None:
    """Begin one state; what a deleted group of the same name left behind, under higher epochs, makes room for it."""
    try:
        await share_persister.initialize(broker, command)
    except KafkaError as error:
        if error.code is not ErrorCode.FENCED_STATE_EPOCH:
            raise
        await share_persister.delete(broker, command.partition)
        await share_persister.initialize(broker, command)
    broker.share.partitions.drop(command.partition)


async def forget_states(
    broker: Broker, group_id: str, partitions: Mapping[UUID, Iterable[int]]
) -> dict[UUID, KafkaError]:
    """Have the share coordinator forget partitions; the topics where it failed for one of them."""
    broker.share.partitions.drop_group(group_id)
    wanted = [(topic_id, index) for topic_id, indexes in partitions.items() for index in indexes]
    results = await _attempts(share_persister.delete(broker, (group_id, topic_id, index)) for topic_id, index in wanted)
    return {topic_id: error for (topic_id, _), error in zip(wanted, results, strict=True) if error is not None}


async def forget_group_states(broker: Broker, group_id: str) -> None:
    """Have all delivery states of a share group without members forgotten, before the group itself is.

    KafkaError if the group has members, or not all could be forgotten; nothing for groups of other kinds.
    """
    group = broker.groups.shard_for(group_id).core.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return
    group.check_delete()
    topics = group.state_topics
    partitions: dict[UUID, frozenset[int]] = {}
    for topic_id, state in (*topics.initializing.items(), *topics.initialized.items()):
        # The states of deleted topics are forgotten without us.
        if topic_id in broker.metadata.topics_by_id:
            partitions[topic_id] = partitions.get(topic_id, frozenset()) | state.partitions
    for error in (await forget_states(broker, group_id, partitions)).values():
        raise error


async def _attempts(works: Iterable[Awaitable[None]]) -> list[KafkaError | None]:
    """What came of each, some at a time: a topic may have very many partitions, and other brokers be asked of each."""
    turns = asyncio.Semaphore(ATTEMPTS_AT_ONCE)

    async def attempt(work: Awaitable[None]) -> KafkaError | None:
        async with turns:
            try:
                await work
            except KafkaError as error:
                return error
        return None

    return await asyncio.gather(*(attempt(work) for work in works))
