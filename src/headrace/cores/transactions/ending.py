"""How transactions end: by their producer's word, or against it.

The decision is one record, PrepareCommit or PrepareAbort; once it is safe the producer is answered and the markers
are written; when all partitions have theirs, `complete` closes the transaction.

Under transaction version 2 the decision also takes the producer to its next epoch. The markers carry that epoch, so
that a write of the old one which arrives late is refused by every partition, and an EndTxn which arrives late or twice
is known by its epoch to belong to a transaction that is over (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.outcome import Outcome, Token
from headrace.cores.transactions.refusals import concurrent, fenced, unmapped, wrong_state
from headrace.cores.transactions.state import COMMITS, COMPLETED, PREPARED, TransactionState
from headrace.cores.transactions.transaction import (
    BUMPS_EPOCH,
    EPOCH_LAST,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdentity,
    Transaction,
)
from headrace.model.errors import KafkaError

if TYPE_CHECKING:
    from headrace.cores.transactions.shard import Transactions
    from headrace.cores.transactions.transaction import TopicPartition


class NeedsProducerId(Struct, frozen=True):
    """As a reply: ask again with a producer id nobody has had; as an effect: call `expiry.abort_late` with one."""

    transactional_id: str


class WriteMarkers(Struct, frozen=True, kw_only=True):
    """An effect: tell every partition of a transaction how it ended, then `complete` it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int


class EndTransaction(Struct, frozen=True, kw_only=True):
    """A producer wants its transaction ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    transaction_version: int
    fresh_producer_id: int | None = None


# --- steps


def end_transaction(core: Transactions, command: EndTransaction, token: Token, now_ms: int) -> Outcome:
    """Decide a transaction; the reply is the identity to go on with, or NeedsProducerId."""
    outcome = Outcome()
    answer: ProducerIdentity | NeedsProducerId | KafkaError
    try:
        answer = _end(core, outcome, command, now_ms)
    except KafkaError as error:
        answer = error
    return outcome.reply(token, answer)


def complete(core: Transactions, effect: WriteMarkers, now_ms: int) -> Outcome:
    """All markers are written: close the transaction, unless it is closed already."""
    outcome = Outcome()
    transaction = core.transactions.get(effect.transactional_id)
    if transaction is None or transaction.state not in PREPARED or markers_of(transaction) != effect:
        return outcome
    producer_id, producer_epoch = _identity_after(transaction)
    bumps = transaction.version >= BUMPS_EPOCH
    closed = transaction.moved(
        TransactionState.COMPLETE_COMMIT if effect.commit else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=transaction.producer_id if bumps else transaction.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=max(now_ms, transaction.updated_ms),
    )
    core.emit(outcome, closed)
    return outcome


# --- for other steps


def fence(
    core: Transactions, outcome: Outcome, transaction: Transaction, fresh_producer_id: int | None, now_ms: int
) -> bool:
    """Abort an ongoing transaction whose producer must not go on; False if that takes a fresh producer id."""
    if core.limits.transaction_version >= BUMPS_EPOCH:
        if transaction.is_epoch_exhausted and fresh_producer_id is None:
            return False
        _prepare(core, outcome, transaction, commit=False, fresh_producer_id=fresh_producer_id, now_ms=now_ms)
        return True
    aborted = transaction.moved(
        TransactionState.PREPARE_ABORT,
        # An epoch is left for this: no producer is given the last one.
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        updated_ms=max(now_ms, transaction.updated_ms),
        version=0,
    )
    core.emit(outcome, aborted, last_epoch=NO_EPOCH)
    outcome.effects.append(markers_of(aborted))
    return True


def markers_of(transaction: Transaction) -> WriteMarkers:
    """The markers of a prepared transaction."""
    return WriteMarkers(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        commit=transaction.state in COMMITS,
        partitions=tuple(sorted(transaction.partitions)),
        transaction_version=transaction.version,
    )


# --- deciding


def _end(
    core: Transactions, outcome: Outcome, command: EndTransaction, now_ms: int
) -> ProducerIdentity | NeedsProducerId:
    transaction = core.transactions.get(command.transactional_id)
    if transaction is None:
        raise unmapped(command.transactional_id)
    bumps = command.transaction_version >= BUMPS_EPOCH
    is_done = _check_with_epochs(transaction, command) if bumps else _check(transaction, command)
    if is_done:
        return transaction.identity
    if not bumps:
        prepared = transaction.moved(
            TransactionState.PREPARE_COMMIT if command.commit else TransactionState.PREPARE_ABORT,
            updated_ms=max(now_ms, transaction.updated_ms),
            version=0,
        )
        core.emit(outcome, prepared)
        outcome.effects.append(markers_of(prepared))
        return prepared.identity
    if transaction.is_epoch_exhausted and command.fresh_producer_id is None:
        return NeedsProducerId(command.transactional_id)
    prepared = _prepare(
        core,
        outcome,
        transaction,
        commit=command.commit,
        fresh_producer_id=command.fresh_producer_id,
        now_ms=now_ms,
    )
    return _identity_after(prepared)


def _check(transaction: Transaction, command: EndTransaction) -> bool:
    """Whether it has ended so already; KafkaError if it cannot. Versions 0 and 1: one epoch has many transactions."""
    transactional_id, state = transaction.transactional_id, transaction.state
    if transaction.producer_id != command.producer_id:
        raise unmapped(transactional_id)
    if transaction.producer_epoch != command.producer_epoch:
        raise fenced(transactional_id)
    if state is TransactionState.ONGOING:
        return False
    if state is TransactionState.EMPTY or (state in COMMITS) != command.commit:
        raise wrong_state(transactional_id, state, commit=command.commit)
    if state in PREPARED:
        raise concurrent(transactional_id)
    return True


def _check_with_epochs(transaction: Transaction, command: EndTransaction) -> bool:
    """The same for version 2, where the epoch tells this transaction from the last."""
    transactional_id, state = transaction.transactional_id, transaction.state
    renewed = (
        transaction.previous_producer_id == command.producer_id != transaction.producer_id
        and command.producer_epoch == EPOCH_LAST
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != command.producer_id and not renewed:
        raise unmapped(transactional_id)
    is_retry = renewed or transaction.producer_epoch == command.producer_epoch + 1
    is_current = transaction.identity == (command.producer_id, command.producer_epoch)
    if not (is_retry and state in PREPARED | COMPLETED) and not (is_current and state not in PREPARED):
        raise fenced(transactional_id)
    if is_current:
        # Nothing can be open and be aborted all the same: the producer's writes may have failed, or be under way.
        if state is not TransactionState.ONGOING and command.commit:
            raise wrong_state(transactional_id, state, commit=True)
        return False
    if (state in COMMITS) != command.commit:
        raise wrong_state(transactional_id, state, commit=command.commit)
    if state in PREPARED:
        raise concurrent(transactional_id)
    return True


def _prepare(
    core: Transactions,
    outcome: Outcome,
    transaction: Transaction,
    *,
    commit: bool,
    fresh_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    """Decide under version 2: the producer goes on in its next epoch, or under another id when there is none left."""
    updated_ms = max(now_ms, transaction.updated_ms)
    is_open = transaction.state is TransactionState.ONGOING
    rotates = transaction.is_epoch_exhausted and fresh_producer_id is not None
    prepared = transaction.moved(
        TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        next_producer_id=fresh_producer_id if rotates else NO_PRODUCER_ID,
        started_ms=transaction.started_ms if is_open else updated_ms,
        updated_ms=updated_ms,
        version=BUMPS_EPOCH,
    )
    core.emit(outcome, prepared, last_epoch=transaction.producer_epoch)
    outcome.effects.append(markers_of(prepared))
    return prepared


def _identity_after(prepared: Transaction) -> ProducerIdentity:
    """Who the transactional id belongs to once the markers are written."""
    if prepared.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(prepared.next_producer_id, 0)
    return prepared.identity
