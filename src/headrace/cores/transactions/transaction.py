"""One transactional id as it stands in the log: its producer's identity, and its transaction, open or the last."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.cores.transactions.state import TransactionState
from headrace.model.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cores.outcome import Entry

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NOT_STARTED = -1

EPOCH_MAX = 2**15 - 1
EPOCH_LAST = EPOCH_MAX - 1
"""The last epoch a producer may have: one must be left to fence it with."""

BUMPS_EPOCH = 2
"""The transaction version from which on every transaction has an epoch of its own (KIP-890)."""


class ProducerIdentity(NamedTuple):
    """What a producer is known by."""

    producer_id: int
    producer_epoch: int


class Transaction(Struct, frozen=True, kw_only=True):
    """What the log's last record says of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    updated_ms: int
    started_ms: int = NOT_STARTED
    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before this one, to know a producer again that missed being given a new one."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that counts once the markers are written, where the epochs of this one are used up."""
    version: int = 0
    """The transaction version of who opened or ended the transaction."""

    @property
    def identity(self) -> ProducerIdentity:
        """Who may write."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no further epoch to give."""
        return self.producer_epoch >= EPOCH_LAST

    def moved(self, state: TransactionState, **changes: Any) -> Transaction:
        """The same transactional id in another state."""
        return replace(self, state=state, **changes)


def to_record(transaction: Transaction) -> Entry:
    """The record that makes the log say this."""
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogKey(transactional_id=transaction.transactional_id), TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=None if is_empty else tuple(_by_topic(transaction.partitions)),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )


def from_record(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    """What a record says."""
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        state=TransactionState(value.transaction_status),
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        partitions=frozenset(
            (topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        version=value.client_transaction_version,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterable[PartitionsSchema]:
    """Sorted, so that a record is a function of what it says."""
    for topic, members in groupby(sorted(partitions), key=itemgetter(0)):
        yield PartitionsSchema(topic=topic, partition_ids=tuple(index for _, index in members))
