"""How fast replicas may be copied (KIP-73, KIP-113): a rate over the last seconds, and whose copying it holds back.

What was copied is counted in samples of a fixed length, of which so many are remembered; the rate is their sum over
the time since the oldest began. Nothing is refused: what is copied counts even beyond the bound, and whoever asks
`is_exceeded` before the next step waits until the average is below it again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

UNBOUNDED = 2**63 - 1
EVERY_REPLICA = "*"


class Rate:
    """Bytes a second, over the last samples."""

    __slots__ = ("_sample_ms", "_samples", "_samples_max", "_total")

    def __init__(self, *, samples_max: int, sample_ms: int) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        self._samples: deque[tuple[int, int]] = deque()
        """When each began, and what was counted in it."""
        self._total = 0

    def record(self, amount: int, now_ms: int) -> None:
        """Count something."""
        self._forget(now_ms)
        if self._samples and now_ms < self._samples[-1][0] + self._sample_ms:
            began_ms, counted = self._samples.pop()
            self._samples.append((began_ms, counted + amount))
        else:
            self._samples.append((now_ms, amount))
        self._total += amount

    def per_second(self, now_ms: int) -> float:
        """The rate now; 0 if nothing is remembered."""
        self._forget(now_ms)
        if not self._samples:
            return 0.0
        return self._total * 1000 / max(now_ms - self._samples[0][0], self._sample_ms)

    def ms_until(self, bound: int, now_ms: int) -> int:
        """How long until the rate may be below a bound, if nothing more is counted; 0 if it is."""
        if self.per_second(now_ms) <= bound:
            return 0
        first_ms = self._samples[0][0]
        forgotten_ms = first_ms + self._samples_max * self._sample_ms
        thin_ms = first_ms + self._total * 1000 // bound + 1 if bound > 0 else forgotten_ms
        return max(1, min(thin_ms, forgotten_ms) - now_ms)

    def _forget(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._samples_max * self._sample_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._total -= self._samples.popleft()[1]


class ReplicationQuota:
    """A bound on the copying of some replicas."""

    __slots__ = ("_rate", "_throttled", "bound")

    def __init__(self, *, samples_max: int, sample_ms: int) -> None:
        self._rate = Rate(samples_max=samples_max, sample_ms=sample_ms)
        self.bound = UNBOUNDED
        """Bytes a second."""
        self._throttled: dict[str, frozenset[int] | None] = {}
        """By topic the partitions that are held back, None for all."""

    def throttle(self, topic: str, listed: Sequence[str], broker_id: int) -> None:
        """Take over which of a topic's replicas are throttled: `partition:broker` each, or `*` for all."""
        if EVERY_REPLICA in listed:
            self._throttled[topic] = None
            return
        here = frozenset(_partitions_of(broker_id, listed))
        if here:
            self._throttled[topic] = here
        else:
            self._throttled.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Whether a partition's copying counts, and may have to wait. HOT, where nothing is throttled."""
        if not self._throttled or topic not in self._throttled:
            return False
        partitions = self._throttled[topic]
        return partitions is None or partition in partitions

    def record(self, size: int, now_ms: int) -> None:
        """Count what was copied."""
        self._rate.record(size, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether more was copied lately than may be."""
        return self.bound < UNBOUNDED and self._rate.per_second(now_ms) > self.bound

    def wait_ms(self, now_ms: int) -> int:
        """How long to wait before it is worth asking again; 0 if the quota is not exceeded."""
        return self._rate.ms_until(self.bound, now_ms) if self.bound < UNBOUNDED else 0


def _partitions_of(broker_id: int, listed: Collection[str]) -> list[int]:
    """The partitions that a list names together with a broker; what is not such a pair names none."""
    pairs = (entry.strip().split(":") for entry in listed)
    return [int(pair[0]) for pair in pairs if len(pair) == 2 and pair[0].isdigit() and pair[1] == str(broker_id)]
