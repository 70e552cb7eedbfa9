"""What the pages about transactions show: all transactional ids, one of them, and what hangs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.admin_values import (
    ProducerDescription,
    TransactionDescription,
    TransactionListing,
)
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.async_admin import AsyncKafkaAdmin
    from headrace.gateway.services import Services

AT_REST = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
"""States in which a transactional id has nothing open."""
_DESCRIBED_MAX = 100
"""A list of all says of so many open ones since when they are open."""
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow:
    """A transactional id in the list."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator_id: int
    open_ms: int | None
    """For how long its transaction has been open."""
    partitions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDetail:
    """One transactional id, and where its transaction begins in each partition."""

    description: TransactionDescription
    open_ms: int | None
    starts: dict[TopicPartition, ProducerDescription | None]


async def load_transactions(services: Services) -> list[TransactionRow]:
    """All transactional ids, those with something open first."""
    admin = services.admin
    listed = await admin.list_transactions()
    is_open = [one for one in listed if one.state not in AT_REST][:_DESCRIBED_MAX]
    limit = asyncio.Semaphore(_AT_ONCE)
    described = await asyncio.gather(*(_described(admin, one, limit) for one in is_open))
    known = {one.transactional_id: one for one in described if one is not None}
    now_ms = _now_ms()
    rows = [_row(one, known.get(one.transactional_id), now_ms) for one in listed]
    return sorted(rows, key=lambda row: (row.state in AT_REST, row.transactional_id))


async def _described(
    admin: AsyncKafkaAdmin, listed: TransactionListing, limit: asyncio.Semaphore
) -> TransactionDescription | None:
    """None if it has ended and was forgotten since it was listed."""
    async with limit:
        try:
            return await admin.describe_transaction(listed.transactional_id)
        except KafkaError as error:
            if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return None
            raise


def _row(listed: TransactionListing, known: TransactionDescription | None, now_ms: int) -> TransactionRow:
    return TransactionRow(
        transactional_id=listed.transactional_id,
        state=listed.state,
        producer_id=listed.producer_id,
        coordinator_id=listed.coordinator_id,
        open_ms=_open_ms(known, now_ms),
        partitions=None if known is None else len(known.partitions),
    )


def _open_ms(known: TransactionDescription | None, now_ms: int) -> int | None:
    return None if known is None or known.started_ms is None else max(now_ms - known.started_ms, 0)


async def load_transaction(services: Services, transactional_id: str) -> TransactionDetail:
    """One transactional id; KafkaError if nobody used it."""
    admin = services.admin
    try:
        described = await admin.describe_transaction(transactional_id)
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        raise KafkaError(error.code, f"Nobody has used the transactional id '{transactional_id}' here.") from None
    producers = await admin.describe_producers(described.partitions) if described.partitions else {}
    starts = {
        place: next((one for one in found if one.producer_id == described.producer_id), None)
        for place, found in producers.items()
    }
    return TransactionDetail(description=described, open_ms=_open_ms(described, _now_ms()), starts=starts)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
