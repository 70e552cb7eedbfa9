"""The states a transactional id goes through, and which may follow which.

    Empty ──────────┐                 ┌─> PrepareCommit ──> CompleteCommit ─┐
      ^             ├──> Ongoing ─────┤                                     ├──> Ongoing, Empty, PrepareAbort
      └── (init) ───┘                 └─> PrepareAbort ───> CompleteAbort ──┘

Once a Prepare state is in the log the transaction's fate is sealed: the markers follow, whatever happens.
An abort may also follow where nothing is open: under transaction version 2 a producer ends what it cannot know to be
empty, and gets its next epoch that way (KIP-890).
"""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """Kafka's states, by their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """In Kafka a transactional id that is being forgotten; here that is one step, so nothing rests in it."""
    PREPARE_EPOCH_FENCE = 7
    """In Kafka the moment between fencing a producer and aborting for it; here that is one step too."""

    @property
    def title(self) -> str:
        """The state's name as tools show and filter it."""
        return _TITLES[self]


_TITLES = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState}

BY_TITLE = {title: state for state, title in _TITLES.items()}

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""Decided, but not all partitions know."""

COMPLETED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})

IDLE = COMPLETED | {TransactionState.EMPTY}
"""Nothing is open: a producer may begin, or the id be forgotten if none does for long."""

COMMITS = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT})

PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""The states each state may come from; a state that is not listed is never entered."""
