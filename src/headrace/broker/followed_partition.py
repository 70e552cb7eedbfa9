"""What only a follower of a partition does: it takes in what the leader sends, and follows its marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.held_partition import HeldPartition
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.log_config import UNBOUNDED_MS
from headrace.records.batch import CorruptBatch

if TYPE_CHECKING:
    from headrace.cores.replication.messages import FetchAnswer
    from headrace.model.log_config import LogConfig
    from headrace.storage.log import Log


class FollowedPartition(HeldPartition):
    """A partition while another broker leads it."""

    __slots__ = ()

    def take_in(self, records: memoryview, answer: FetchAnswer, now_ms: int) -> None:
        """Append what the leader sent and follow its marks; KafkaError or StorageFault if that cannot be.

        The caller flushes, where the topic flushes, before it asks for more.
        """
        assert self.replica is not None
        follower = self.replica.follower
        assert follower is not None, "only a follower takes in what a leader sends"
        log = self.log
        if len(records):
            try:
                log.append_follower(records, now_ms)
            except CorruptBatch as fault:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(fault)) from fault
            except StorageFault as fault:
                raise self._refused(fault) from fault
            self.traffic.replication_bytes_in += len(records)
            if self._is_refusing:
                self._accept_again()
            self._flush_as_told(log, log.config)
        follower.appended(answer)
        self.advance(follower.high_watermark)
        self._leader_start_offset = answer.log_start_offset
        self._follow_start()

    def _flush_as_told(self, log: Log, config: LogConfig) -> None:
        """Flush by count or time where the topic does not flush before it acknowledges."""
        if config.flush_on_acks_all:
            return
        if log.log_end_offset - log.recovery_point >= config.flush_messages:
            self._flusher.request(self)
        elif config.flush_ms != UNBOUNDED_MS:
            self._flush_later(config.flush_ms)

    def _follow_start(self) -> None:
        """Let the log start where the leader's does, as far as that is committed, and safe here where that counts."""
        log = self.log
        start_offset = min(self._leader_start_offset, log.high_watermark)
        if log.config.flush_on_acks_all:
            start_offset = min(start_offset, log.recovery_point)
        if start_offset > log.log_start_offset:
            log.advance_start_offset(start_offset)
