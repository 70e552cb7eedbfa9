"""The step of the pipeline that watches every truck: Spark keeps the state and the timers, `alert_rules` decides.

Trucks are watched in groups. To ask Spark's state store from Python takes a tenth of a millisecond, whatever is asked,
and a row that Spark hands over takes forty times as long as the same values in a list: for every truck and report of a
batch that would be nearly all of the work. So the reports of a group come as lists, without those that say nothing new
(stretches.py), its state is one text, and its timer the first that one of its trucks needs. Timers are lazy: one that
is set stays, although new reports move what it waits for; when it fires too early it is set again.
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from alert_rules import ALERT_SCHEMA, Alert, Limits, Report, TruckState, elapse, follow, go_to, wakes_at
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from stretches import PACKED_SCHEMA, Packing, Stretch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS = 64
"""As many tasks can share the work; more groups cost more questions. A checkpoint holds it: another number needs a new
one."""
STATE_SCHEMA = "trucks string, timer_ms bigint"
"""The states of a group's trucks by name, as JSON, and the timer that is set, or -1."""
_NEVER = -1
_ALERT_ROW = Row(*Alert._fields)

States = dict[str, TruckState]


def detect(inputs: "dict[str, DataFrame]", spark: "SparkSession", options: dict[str, Any]) -> "DataFrame":
    """Alerts from reports, with the limits of the pipeline's file; repeated reports may be among them."""
    (reports,) = inputs.values()
    limits = Limits(
        speed_kmh=float(options.get("limit_kmh", Limits().speed_kmh)),
        idle_ms=round(60_000 * float(options.get("idle_minutes", Limits().idle_ms / 60_000))),
        silent_ms=round(1000 * float(options.get("silent_seconds", Limits().silent_ms / 1000))),
    )
    columns = ["truck_id", "seq", "unix_millis(ts) AS ts_ms", "lat", "lon", "speed_kmh"]
    found = (
        reports.selectExpr(f"pmod(hash(truck_id), {GROUPS}) AS group", *columns)
        .mapInArrow(Packing(limits), PACKED_SCHEMA)
        .groupBy("group")
        .transformWithState(
            statefulProcessor=TruckWatch(limits),
            outputStructType=ALERT_SCHEMA,
            outputMode="Append",
            timeMode="EventTime",
        )
    )
    return found.selectExpr(
        "alert_id", "truck_id", "kind", "detail", "timestamp_millis(at_ms) AS at", "lat", "lon", "seq"
    )


class TruckWatch(StatefulProcessor):
    """Watches the trucks of one partition, one group at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the one value that is kept per group."""
        self._handle = handle
        self._state = handle.getValueState("trucks", STATE_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take the reports of a batch in, every truck's in the order in which it made them."""
        states, timer_ms = self._remembered()
        # A shuffle may bring them in any order.
        for truck_id, seq, ts_ms, lat, lon, speed_kmh, *last in sorted(chain.from_iterable(map(_unpacked, rows))):
            report = Report(seq, ts_ms, lat, lon, speed_kmh)
            state, alerts = follow(truck_id, states.get(truck_id), report, self._limits)
            states[truck_id] = go_to(state, *last)
            for alert in alerts:
                yield _ALERT_ROW(*alert)
        self._keep(states, timer_ms)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Let time pass for the trucks of a group, up to the moment before which no report is still to come."""
        states, _ = self._remembered()
        now_ms = timerValues.getCurrentWatermarkInMs()
        for truck_id, state in states.items():
            states[truck_id], alerts = elapse(truck_id, state, now_ms, self._limits)
            for alert in alerts:
                yield _ALERT_ROW(*alert)
        self._keep(states, _NEVER)

    def close(self) -> None:
        """Nothing is held."""

    def _remembered(self) -> tuple[States, int]:
        kept = self._state.get()
        if kept is None:
            return {}, _NEVER
        return {truck_id: TruckState(*state) for truck_id, state in json.loads(kept[0]).items()}, kept[1]

    def _keep(self, states: States, timer_ms: int) -> None:
        """Store the states, with a timer set that does not come too late for any of them."""
        wakes_ms = [wake_ms for state in states.values() if (wake_ms := wakes_at(state, self._limits)) is not None]
        if wakes_ms and (timer_ms == _NEVER or min(wakes_ms) < timer_ms):
            if timer_ms != _NEVER:
                self._handle.deleteTimer(timer_ms)
            timer_ms = min(wakes_ms)
            self._handle.registerTimer(timer_ms)
        self._state.update((json.dumps(states), timer_ms))


def _unpacked(row: Row) -> Iterator[tuple[Any, ...]]:
    """The stretches of a packed row, each with its truck before it."""
    return zip(row.truck_id, *(row[name] for name in Stretch._fields), strict=True)
