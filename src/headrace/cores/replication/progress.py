"""How far one follower is, as its leader sees it."""

from __future__ import annotations

_UNHEARD = -2
"""The broker epoch of a follower that has not fetched yet; -1 is one that does not tell."""
_LONG_AGO_MS = -(2**62)


class FollowerProgress:
    """A follower's last fetch, and when it was last level with the leader."""

    __slots__ = (
        "_leader_end_at_fetch",
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_ms",
        "log_start_offset",
        "offset",
    )

    def __init__(self, broker_id: int, now_ms: int, *, in_sync: bool) -> None:
        """A member of the ISR counts as level until shown otherwise, any other as never having been."""
        self.broker_id = broker_id
        self.offset = -1
        """What it has, on its disk where the topic flushes; -1 until its first fetch from this leader."""
        self.log_start_offset = -1
        self.broker_epoch = _UNHEARD
        self.last_fetch_ms = _LONG_AGO_MS
        self.last_caught_up_ms = now_ms if in_sync else _LONG_AGO_MS
        self._leader_end_at_fetch = -1

    @property
    def known_broker_epoch(self) -> int:
        """The broker epoch it last fetched with, -1 if it has not."""
        return max(self.broker_epoch, -1)

    @property
    def is_heard(self) -> bool:
        """Whether it has fetched from this leader."""
        return self.broker_epoch != _UNHEARD

    def fetched(self, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        """Take down a fetch; HOT.

        A follower that has what the leader had at its fetch before was level then: so one that is always a little
        behind a busy leader still counts as caught up.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self._leader_end_at_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.last_fetch_ms = now_ms
        self._leader_end_at_fetch = max(self._leader_end_at_fetch, leader_end)

    def lead_again(self, leader_end: int, now_ms: int, *, in_sync: bool) -> None:
        """The same leader was elected for a new epoch: what the follower has is known, its times begin anew."""
        self._leader_end_at_fetch = leader_end
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if in_sync else _LONG_AGO_MS

    def taken_out(self) -> None:
        """The controller took it out of the ISR, perhaps because its disk failed: it is level when it says so again."""
        self.last_caught_up_ms = _LONG_AGO_MS

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        """Whether it is level with the leader, or was within the time that is allowed."""
        return self.offset == leader_end or now_ms - self.last_caught_up_ms <= lag_max_ms
