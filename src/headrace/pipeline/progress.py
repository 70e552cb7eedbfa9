"""How far a query is: what Spark reports after each batch, and what a person wants to know of it.

Lag in records is where the topics end less where the query is. Lag in seconds is for how long records have been waiting
for it: we remember when the topics' end was seen where, and look when it passed the point the query has reached. Spark
reports where topics ended when it planned a batch; a query that falls behind, in ever longer batches, would seem to be
level with them. So we are told from elsewhere where they end now, if anybody can.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

HEADS_MAX = 600
"""How many ends of the topics are remembered: at one batch per second, ten minutes."""

Positions = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """One query after a batch."""

    pipeline: str
    query: str
    batch_id: int
    time_ms: int
    rows: int
    rows_total: int
    rows_per_second: float
    lag_records: int | None
    """None where the topics' ends are not known."""
    lag_ms: int | None
    batch_ms: int
    state_rows: int | None
    """None where Spark was told not to count them."""
    late_rows: int
    late_rows_total: int
    watermark: str

    def document(self) -> dict[str, Any]:
        """For programs, in the spelling of all our documents."""
        return {_camel(name): value for name, value in asdict(self).items()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What such a document says."""
        return cls(**{field.name: document[_camel(field.name)] for field in fields(cls)})


class Tracker:
    """What is remembered of one query between its batches."""

    __slots__ = ("_counts_state", "_ends", "_heads", "late_total", "pipeline", "positions", "query", "rows_total")

    def __init__(self, pipeline: str, query: str, *, counts_state: bool = True) -> None:
        """`counts_state`: whether Spark counts the rows of its state; where it does not, it reports 0."""
        self._counts_state = counts_state
        self.pipeline = pipeline
        self.query = query
        self.rows_total = 0
        self.late_total = 0
        self.positions: Positions = {}
        """Where the query is: the first offsets it has not processed."""
        self._ends: Positions = {}
        self._heads: deque[tuple[int, int]] = deque(maxlen=HEADS_MAX)

    def see(self, ends: Positions, *, now_ms: int) -> None:
        """Take note of where the topics end now."""
        self._ends = {place: ends[place] for place in self.positions if place in ends}
        self._heads.append((now_ms, sum(self._ends.values())))

    def take(self, report: Mapping[str, Any], *, now_ms: int) -> QueryProgress:
        """What Spark's report of a batch means."""
        sources = report.get("sources", ())
        self.positions = positions_of(sources, "endOffset") or self.positions
        heads = positions_of(sources, "latestOffset")
        heads |= {place: max(end, heads.get(place, end)) for place, end in self._ends.items()}
        lag = lag_records(self.positions, heads) if heads else None
        rows = int(report.get("numInputRows", 0))
        operators = report.get("stateOperators", ())
        late = sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators)
        self.rows_total += rows
        self.late_total += late
        batch_ms = int(report.get("durationMs", {}).get("triggerExecution", report.get("batchDuration", 0)))
        return QueryProgress(
            pipeline=self.pipeline,
            query=self.query,
            batch_id=int(report.get("batchId", -1)),
            time_ms=now_ms,
            rows=rows,
            rows_total=self.rows_total,
            rows_per_second=_finite(report.get("processedRowsPerSecond", 0.0)),
            lag_records=lag,
            lag_ms=self._waiting_ms(heads, lag, now_ms) if lag is not None else None,
            batch_ms=batch_ms,
            state_rows=sum(int(one.get("numRowsTotal", 0)) for one in operators) if self._counts_state else None,
            late_rows=late,
            late_rows_total=self.late_total,
            watermark=str(report.get("eventTime", {}).get("watermark", "")),
        )

    def _waiting_ms(self, heads: Positions, lag: int, now_ms: int) -> int:
        head = sum(heads.values())
        self._heads.append((now_ms, head))
        here = head - lag
        waiting_since = next((seen_ms for seen_ms, was in self._heads if was > here), now_ms)
        return now_ms - waiting_since if lag else 0


def positions_of(sources: Any, field: str) -> Positions:
    """Offsets by topic and partition out of Spark's report; of several sources on one topic, the one that is behind."""
    found: Positions = {}
    for source in sources:
        offsets = source.get(field)
        if isinstance(offsets, str):
            offsets = json.loads(offsets) if offsets.startswith("{") else None
        if not isinstance(offsets, dict):
            continue
        for topic, parts in offsets.items():
            if not isinstance(parts, dict):
                continue
            for partition, offset in parts.items():
                place = (topic, int(partition))
                found[place] = min(int(offset), found.get(place, int(offset)))
    return found


def lag_records(positions: Positions, heads: Positions) -> int:
    """How many offsets lie between where a query is and where the topics end."""
    return sum(max(0, head - positions.get(place, 0)) for place, head in heads.items())


def slowest(positions: list[Positions]) -> Positions:
    """Where all of these queries have been: per partition the one that is behind; nothing where one has not begun."""
    if not positions:
        return {}
    common = set.intersection(*(set(one) for one in positions))
    return {place: min(one[place] for one in positions) for place in common}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _finite(number: Any) -> float:
    """A rate; Spark writes text where it divided by nothing."""
    return round(float(number), 1) if isinstance(number, int | float) and abs(number) != float("inf") else 0.0
