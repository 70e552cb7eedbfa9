"""The transaction records of `__transaction_state`, in Kafka's names; `wire` knows how each looks in bytes."""

from __future__ import annotations

from msgspec import Struct


class PartitionsSchema(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic in a transaction."""

    topic: str = ""
    partition_ids: tuple[int, ...] = ()


class TransactionLogKey(Struct, frozen=True, kw_only=True, gc=False):
    """A transactional id."""

    transactional_id: str = ""


class TransactionLogValue(Struct, frozen=True, kw_only=True, gc=False):
    """Where a transactional id's transaction stands."""

    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: tuple[PartitionsSchema, ...] | None = None
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
