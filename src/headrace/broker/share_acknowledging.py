"""Acknowledgements as they come in a ShareFetch or a ShareAcknowledge, carried out partition by partition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from headrace.cores.share_partition_acknowledgements import REJECT, RENEW, Acknowledgement
from headrace.cores.share_partition_runs import RUNS_MAX
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from headrace.broker.share_service import ShareService

    TopicPartition = tuple[UUID, int]


_TURN_KINDS = 2000
"""So much of what a request says is taken in at a time, at up to 10 µs each, unless one partition has more."""


class AcknowledgementBatch(Protocol):
    """What both requests have."""

    @property
    def first_offset(self) -> int:
        """Of the first record."""

    @property
    def last_offset(self) -> int:
        """Of the last record."""

    @property
    def acknowledge_types(self) -> tuple[int, ...]:
        """One for all, or one each."""


async def acknowledge(
    service: ShareService,
    group_id: str,
    member_id: str,
    said: Mapping[TopicPartition, Sequence[AcknowledgementBatch]],
    *,
    may_renew: bool,
) -> dict[TopicPartition, KafkaError | None]:
    """Carry out what a member says of its records; what came of it, by partition."""
    results: dict[TopicPartition, asyncio.Task[KafkaError | None]] = {}
    turn = 0
    async with asyncio.TaskGroup() as tasks:
        for partition, batches in said.items():
            share_id = (group_id, *partition)
            work = _acknowledge(service, share_id, member_id, batches, may_renew=may_renew)
            results[partition] = tasks.create_task(work)
            turn += sum(len(batch.acknowledge_types) for batch in batches)
            if turn > _TURN_KINDS:
                # Others have their turn between two of ours: one partition does not depend on another.
                turn = 0
                await asyncio.sleep(0)
    return {partition: task.result() for partition, task in results.items()}


async def _acknowledge(
    service: ShareService,
    share_id: tuple[str, UUID, int],
    member_id: str,
    batches: Sequence[AcknowledgementBatch],
    *,
    may_renew: bool,
) -> KafkaError | None:
    kinds_max = RENEW if may_renew else REJECT
    # One more than there may be is enough for a refusal.
    batches = batches[: RUNS_MAX + 1]
    try:
        for batch in batches:
            if max(batch.acknowledge_types, default=0) > kinds_max:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid acknowledge type.")
        leader = service.partitions.find(share_id)
        if leader is None:
            raise service.partitions.missing(share_id)
        await leader.acknowledge(
            member_id,
            [Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches],
        )
    except KafkaError as error:
        return error
    return None
