"""The fleet's account: every report that was sent must be found once, as a position or as a dead letter. Pure."""

from collections import Counter
from dataclasses import dataclass, field

_PROCESSED, _DEAD = 1, 2
_EXACT_MS, _STEP_MS, _LONGEST_MS = 10_000, 100, 3_600_000
"""Latencies are counted to the millisecond, longer ones to a tenth of a second, so that their table stays small."""
_NAMED_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the reports of a ledger."""

    sent: int
    processed: int
    dead_lettered: int
    missing: int
    twice: int
    """Positions that came again, reports that are position and dead letter, and those nobody sent."""
    alerts: dict[str, int]
    alerts_twice: int
    latency_p50_ms: int
    latency_p99_ms: int
    examples: list[str] = field(default_factory=list)
    """Some of the reports that are missing."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost and nothing came twice."""
        return not (self.missing or self.twice or self.alerts_twice)


class Account:
    """Counts what comes out of the pipeline, by truck and number."""

    def __init__(self) -> None:
        self._marks: dict[str, bytearray] = {}
        self._alerts: set[str] = set()
        self._kinds: Counter[str] = Counter()
        self._latencies: Counter[int] = Counter()
        self.processed = 0
        self.dead_lettered = 0
        self._twice = 0
        self.alerts_twice = 0

    def add_position(self, truck_id: str, seq: int, latency_ms: int) -> None:
        """A report became a position, and was seen so long after it had been sent."""
        if self._mark(truck_id, seq, _PROCESSED):
            self._twice += 1
        else:
            self.processed += 1
        shown_ms = latency_ms if latency_ms < _EXACT_MS else min(latency_ms, _LONGEST_MS) // _STEP_MS * _STEP_MS
        self._latencies[shown_ms] += 1

    def add_dead_letter(self, truck_id: str, seq: int) -> None:
        """A report became a dead letter; those may be repeated, and count once."""
        before = self._mark(truck_id, seq, _DEAD)
        if before & _PROCESSED:
            self._twice += 1
        elif not before:
            self.dead_lettered += 1

    def add_alert(self, alert_id: str, kind: str) -> None:
        """An alert came."""
        if alert_id in self._alerts:
            self.alerts_twice += 1
        else:
            self._alerts.add(alert_id)
            self._kinds[kind] += 1

    def is_complete(self, ledger: dict[str, int]) -> bool:
        """Whether there is as much as the ledger says; looked at often, so it only counts."""
        return self.processed + self.dead_lettered >= sum(ledger.values())

    def verdict(self, ledger: dict[str, int]) -> Verdict:
        """Compare with what was sent: how many reports each truck made."""
        missing: list[str] = []
        lost = unknown = 0
        for truck_id, reports in ledger.items():
            marks = self._marks.get(truck_id, bytearray())
            lost += marks.count(0, 0, reports) + max(0, reports - len(marks))
            unknown += max(0, len(marks) - reports)
            if len(missing) < _NAMED_MAX:
                missing += [f"{truck_id}:{seq}" for seq in range(reports) if seq >= len(marks) or not marks[seq]]
        unknown += sum(len(marks) for truck_id, marks in self._marks.items() if truck_id not in ledger)
        p50, p99 = self._quantiles()
        return Verdict(
            sent=sum(ledger.values()),
            processed=self.processed,
            dead_lettered=self.dead_lettered,
            missing=lost,
            twice=self._twice + unknown,
            alerts=dict(sorted(self._kinds.items())),
            alerts_twice=self.alerts_twice,
            latency_p50_ms=p50,
            latency_p99_ms=p99,
            examples=missing[:_NAMED_MAX],
        )

    def _mark(self, truck_id: str, seq: int, mark: int) -> int:
        """Note what became of a report; what was known of it before."""
        marks = self._marks.setdefault(truck_id, bytearray())
        if seq >= len(marks):
            marks.extend(bytes(seq + 1 - len(marks)))
        before = marks[seq]
        marks[seq] = before | mark
        return before

    def _quantiles(self) -> tuple[int, int]:
        """The latencies that half and 99 of a hundred reports stay within; of all reports, the late ones too."""
        total = self._latencies.total()
        return self._at(total // 2), self._at(min(total - 1, total * 99 // 100))

    def _at(self, place: int) -> int:
        for latency_ms, count in sorted(self._latencies.items()):
            place -= count
            if place < 0:
                return latency_ms
        return 0
