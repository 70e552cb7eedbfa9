"""Leader epochs between replicas: who is out of date, and where two logs part (KIP-101, 279, 320, 595).

Two logs that have a record of the same epoch at the same offset are equal up to it. So the leader needs only the
follower's last offset and its epoch to see whether they agree, and if not, how far they may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.replication.messages import NO_EPOCH, EpochEnd
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cores.replication.messages import ReplicaLog


def check_leader_epoch(asked: int, current: int) -> None:
    """Refuse whoever speaks to another leader epoch than ours; -1 is not checked."""
    if asked in (current, NO_EPOCH):
        return
    if asked < current:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch {asked} is older than the current one, {current}."
        )
    raise KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH, f"The leader epoch {asked} is newer than the one known here, {current}."
    )


def diverging_epoch(log: ReplicaLog, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
    """Where a log that ends at `offset` with a record of an epoch parts from ours; None if it is a part of ours.

    OFFSET_OUT_OF_RANGE if we do not have the offset, or cannot tell.
    """
    if offset < log.log_start_offset:
        raise _out_of_range(log, offset)
    if last_fetched_epoch != NO_EPOCH:
        epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"It is not known here where the leader epoch {last_fetched_epoch} ends."
            )
        if epoch < last_fetched_epoch or end_offset < offset:
            return EpochEnd(epoch, end_offset)
    if offset > log.log_end_offset:
        raise _out_of_range(log, offset)
    return None


def check_comparable(log: ReplicaLog, offset: int, last_fetched_epoch: int) -> None:
    """Refuse a follower that has just reached our start with records of an epoch we no longer know.

    We have deleted what we would compare its records with, so it may hold others, and it may be elected before it
    deletes them too. OFFSET_OUT_OF_RANGE makes it start over at our start, which is what it will have left anyway.
    """
    if offset == log.log_start_offset and NO_EPOCH != last_fetched_epoch < log.epoch_at(offset):
        raise _out_of_range(log, offset)


def _out_of_range(log: ReplicaLog, offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"The offset {offset} is not between {log.log_start_offset} and {log.log_end_offset}.",
    )


def truncation_offset(log: ReplicaLog, leader: EpochEnd) -> int:
    """How far our log may agree with that of a leader in which the given epoch ends at the given offset (KIP-279).

    Where we do not know that epoch, only the part below it is kept, and the leader must be asked again from there:
    after elections in quick succession the two logs may have parted more than once.
    """
    end_offset = log.log_end_offset
    epoch, own_end = log.end_offset_for_epoch(leader.epoch)
    if epoch < 0:
        return min(leader.end_offset, end_offset)
    if epoch != leader.epoch:
        return min(own_end, end_offset)
    return min(own_end, leader.end_offset, end_offset)
