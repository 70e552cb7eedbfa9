"""Why a producer is refused, in the words and codes that all steps share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cores.transactions.state import TransactionState


def unmapped(transactional_id: str) -> KafkaError:
    """The transactional id is unknown, or has another producer id."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"The producer id is not the one that is assigned to the transactional id {transactional_id!r}.",
    )


def fenced(transactional_id: str) -> KafkaError:
    """Another producer has taken over, or the coordinator ended the transaction."""
    return KafkaError(
        ErrorCode.PRODUCER_FENCED, f"There is a newer epoch of the producer of transactional id {transactional_id!r}."
    )


def concurrent(transactional_id: str) -> KafkaError:
    """The last transaction is not quite over; the client tries again."""
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"The last transaction of transactional id {transactional_id!r} is still being completed; try again.",
    )


def wrong_state(transactional_id: str, state: TransactionState, *, commit: bool) -> KafkaError:
    """What was asked for does not follow from where the transaction is."""
    verb = "committed" if commit else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"The transaction of transactional id {transactional_id!r} is in state {state.title} and cannot be {verb}.",
    )
