"""Acknowledgements as they come in a ShareFetch or a ShareAcknowledge, carried out partition by partition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from headrace.cores.share_partition_acknowledgements import REJECT, RENEW, Acknowledgement
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from headrace.broker.share_service import ShareService

    TopicPartition = tuple[UUID, int]


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
    results = await asyncio.gather(
        *(
            _acknowledge(service, (group_id, *partition), member_id, batches, may_renew=may_renew)
            for partition, batches in said.items()
        )
    )
    return dict(zip(said, results, strict=True))


async def _acknowledge(
    service: ShareService,
    share_id: tuple[str, UUID, int],
    member_id: str,
    batches: Sequence[AcknowledgementBatch],
    *,
    may_renew: bool,
) -> KafkaError | None:
    kinds_max = RENEW if may_renew else REJECT
    try:
        for batch in batches:
            if any(kind > kinds_max for kind in batch.acknowledge_types):
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid acknowledge type.")
        leader = service.partitions.find(share_id)
        if leader is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The share partition is not read by anybody.")
        await leader.acknowledge(
            member_id,
            [Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches],
        )
    except KafkaError as error:
        return error
    return None
