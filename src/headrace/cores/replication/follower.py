"""A follower of a partition: what to ask the leader for, and what to do with its answer.

The shell's round: `ask()`, send it, hand the answer back to `answered()` with what was asked, do what that says:

    APPEND          append the records, if any, then call `appended(answer)`; flush, where the topic flushes
    Truncate        truncate the log, then ask again
    StartOver       empty the log and let it begin elsewhere, then ask again
    FIND_RANGE      ask the leader which offsets it has (ListOffsets, with our leader epoch), then call `found()`
    RETRY           ask again after a while
    AWAIT_METADATA  ask nothing more until the metadata names a leader
    IGNORE          it answers something that was asked before

One question is open at a time; to ask again is to give up the one before, and its answer is ignored when it comes. A
truncation is thus always an answer to how the log is now: one that came late would cut off what the leader counts on.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.replication.epochs import truncation_offset
from headrace.cores.replication.messages import NO_EPOCH, NO_LEADER, EpochEnd, FetchPosition
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.cores.replication.messages import (
        FetchAnswer,
        LeaderRange,
        PartitionRegistration,
        ReplicaLog,
        ReplicationSettings,
    )


class Verdict(Enum):
    """What to do with an answer, where that needs no more words."""

    APPEND = "append"
    FIND_RANGE = "find range"
    RETRY = "retry"
    AWAIT_METADATA = "await metadata"
    IGNORE = "ignore"


class Truncate(Struct, frozen=True, kw_only=True):
    """Drop everything from an offset on, and every leader epoch that begins there or later."""

    offset: int
    lost_high_watermark: int = -1
    """The high watermark that this goes below, -1 if it does not: a loss, to be said loudly."""


class StartOver(Struct, frozen=True, kw_only=True):
    """Empty the log and begin it at an offset: the leader no longer has what would follow ours."""

    offset: int
    lost_high_watermark: int = -1
    """As in Truncate; never set where the leader merely deleted old records."""


Action = Verdict | Truncate | StartOver

_ON_ERROR = {
    ErrorCode.OFFSET_OUT_OF_RANGE: Verdict.FIND_RANGE,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.AWAIT_METADATA,
}
"""By error. Any other (UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, …) passes when whoever is behind
has caught up with the metadata."""


class Follower:
    """This broker's part of a partition while another leads it."""

    __slots__ = (
        "_asked",
        "_is_fenced",
        "_leader_high_watermark",
        "_log",
        "_settings",
        "high_watermark",
        "leader",
        "leader_epoch",
    )

    def __init__(
        self,
        log: ReplicaLog,
        partition: PartitionRegistration,
        *,
        settings: ReplicationSettings,
        high_watermark: int,
    ) -> None:
        """The high watermark is what was known before."""
        self._log = log
        self._settings = settings
        self._asked: FetchPosition | None = None
        self._is_fenced = False
        self._leader_high_watermark = -1
        self.leader = partition.leader
        self.leader_epoch = partition.leader_epoch
        self.high_watermark = high_watermark

    def change_log(self, log: ReplicaLog) -> None:
        """Go on with a copy of the log in its place."""
        self._log = log

    def configure(self, settings: ReplicationSettings) -> None:
        """Take new settings."""
        self._settings = settings

    @property
    def must_flush(self) -> bool:
        """Whether our log has to be flushed before we may ask for more: the offset we ask with says what is safe."""
        return self._settings.flushes and self._log.recovery_point < self._log.log_end_offset

    @property
    def is_level(self) -> bool:
        """Whether we have all that is committed, as far as the leader has told: a throttle does not hold us back.

        As long as it has told nothing, which is so after every change of epoch, we ask: we may well be in sync, and
        then every acks=all waits for us. Who is not in sync, the leader holds back.
        """
        return self._leader_high_watermark <= self._log.log_end_offset

    @property
    def lag(self) -> int:
        """How many committed records we lack, as far as the leader has told."""
        return max(self._leader_high_watermark - self._log.log_end_offset, 0)

    def ask(self) -> FetchPosition | None:
        """What to ask the leader for now; None if there is no leader to ask, or something to flush first. HOT."""
        if self.leader == NO_LEADER or self._is_fenced or self.must_flush:
            return None
        self._asked = self._position()
        return self._asked

    def _position(self) -> FetchPosition:
        """Where our log ends, and by which epoch.

        It is read off the last record each time. To carry it on from fetch to fetch is to get it wrong at an empty one
        (KAFKA-15510), and an epoch that began here with no record is nothing the leader need know.
        """
        log = self._log
        end_offset = log.log_end_offset
        is_empty = end_offset == log.log_start_offset
        return FetchPosition(
            leader_epoch=self.leader_epoch,
            offset=end_offset,
            last_fetched_epoch=NO_EPOCH if is_empty else log.epoch_at(end_offset - 1),
            log_start_offset=log.log_start_offset,
        )

    def answered(self, asked: FetchPosition, answer: FetchAnswer) -> Action:
        """What to do with an answer. HOT."""
        if asked is not self._asked:
            return Verdict.IGNORE
        if answer.error is not ErrorCode.NONE:
            return self._on_error(answer.error)
        self._asked = None
        if answer.diverging is not None:
            return self._truncate(answer.diverging)
        return Verdict.APPEND

    def _on_error(self, error: ErrorCode) -> Verdict:
        verdict = _ON_ERROR.get(error, Verdict.RETRY)
        if verdict is not Verdict.FIND_RANGE:
            self._asked = None
        self._is_fenced = verdict is Verdict.AWAIT_METADATA
        return verdict

    def appended(self, answer: FetchAnswer) -> bool:
        """What an answer brought is in our log; whether the high watermark moved. HOT.

        Only now, and only by an answer without divergence: before, our log may hold records the leader does not have
        (KAFKA-14704). A new leader that does not know yet how far the last one got does not set it back.
        """
        self._leader_high_watermark = answer.high_watermark
        mark = min(answer.high_watermark, self._log.log_end_offset)
        if mark <= self.high_watermark:
            return False
        self.high_watermark = mark
        return True

    def found(self, asked: FetchPosition, leader: LeaderRange) -> Action:
        """What to do now that we know which offsets the leader has; ours was not among them."""
        if asked is not self._asked:
            return Verdict.IGNORE
        self._asked = None
        log = self._log
        end_offset = log.log_end_offset
        if leader.start_offset > end_offset or leader.start_offset == end_offset > log.log_start_offset:
            # It deleted all we have, perhaps more, and only what is committed is deleted: nothing is lost.
            self.high_watermark = leader.start_offset
            return StartOver(offset=leader.start_offset)
        if leader.end_offset >= end_offset:
            return Verdict.RETRY
        if leader.end_offset < log.log_start_offset:
            return StartOver(offset=leader.start_offset, lost_high_watermark=self._lower(leader.start_offset))
        return self._truncate(EpochEnd(leader.end_epoch, leader.end_offset))

    def _truncate(self, leader: EpochEnd) -> Truncate:
        offset = truncation_offset(self._log, leader)
        return Truncate(offset=offset, lost_high_watermark=self._lower(offset))

    def _lower(self, offset: int) -> int:
        """Let the high watermark fall to an offset; answers what it was, -1 if it need not fall."""
        lost = self.high_watermark
        if offset >= lost:
            return -1
        self.high_watermark = offset
        return lost
