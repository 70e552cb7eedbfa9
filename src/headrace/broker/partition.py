"""One partition as this broker holds it: the log, its producers, and who waits for what.

The rule that everything here follows: *visible is safe*.
The high watermark is what consumers may read and what acks=all waits for.
Where a topic flushes on acks=all (the default) it follows the disk flush; where a topic opts out it follows the
append, as Kafka's does. With other replicas it is what all that are in sync have (cores/replication decides).

    led here, the only replica    nothing else counts; this path costs nothing for what replication needs
    led here, with followers      `replicated` counts them; every call of it is followed by `_settle`
    led elsewhere                 writes are refused, reads end at what is known to be committed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.followed_partition import FollowedPartition
from headrace.broker.held_partition import not_led_here
from headrace.broker.led_partition import ALL_REPLICAS, Appended, LedPartition
from headrace.broker.steady_clock import steady_ms

if TYPE_CHECKING:
    from headrace.cores.replication.leader import Leader
    from headrace.cores.replication.messages import ReplicationSettings
    from headrace.model.log_config import LogConfig

__all__ = ["ALL_REPLICAS", "Appended", "Partition", "not_led_here"]


class Partition(LedPartition, FollowedPartition):
    """A partition this broker holds a replica of, in the part that it was given."""

    __slots__ = ()

    def lead(self, leader_epoch: int, leader: Leader | None = None) -> None:
        """Serve as the leader from now on; `leader` counts the followers, None if there are none."""
        self.leader_epoch = leader_epoch
        self.is_led = True
        self.replicated = leader
        self.fault = self._broken
        if leader_epoch > 0:
            self._expect_gaps()
        self.rejoin(leader)
        self.wake_fetches()

    def follow(self, leader_epoch: int) -> None:
        """Lead it no longer; everyone who waits is told to look for the leader."""
        self.leader_epoch = leader_epoch
        self.is_led = False
        self.replicated = None
        self._leader_start_offset = -1
        self._refuse(self._broken or not_led_here())

    def rejoin(self, leader: Leader | None) -> None:
        """We lead on in the same epoch, with other replicas, or in sync with others."""
        self.replicated = leader
        if leader is not None:
            self._settle()
        elif self.fault is None:
            self.advance(self.log.recovery_point if self.config.flush_on_acks_all else self.log.log_end_offset)

    def configure(self, config: LogConfig, settings: ReplicationSettings) -> None:
        """Take over changed settings of the topic; they may let the high watermark move."""
        self.log.configure(config)
        if self.replica is not None:
            self.replica.configure(settings, steady_ms())
        if self.replicated is not None:
            self._settle()
        elif self.is_led and not config.flush_on_acks_all:
            self.advance(self.log.log_end_offset)
        self.wake_fetches()

    def on_flushed(self) -> None:
        """The disk has everything below the recovery point: what that means depends on our part."""
        super().on_flushed()
        if self.replicated is not None:
            if self.replicated.flushed(steady_ms()):
                self._settle()
        elif self.is_led:
            self.advance(self.log.recovery_point)
        elif self._leader_start_offset > self.log.log_start_offset:
            self._follow_start()
