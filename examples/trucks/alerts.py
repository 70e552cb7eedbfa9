"""The step of the pipeline that watches every truck: Spark keeps the state and the timers, `alert_rules` decides.

Timers are lazy: one that is set stays, although new reports move what it waits for. When it fires too early it is set
again. So most batches cost a truck one question to the state store and one answer, and no timer.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from alert_rules import ALERT_SCHEMA, STATE_SCHEMA, Alert, Limits, Report, TruckState, elapse, follow, wakes_at
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALERT_ROW = Row(*Alert._fields)


def detect(inputs: "dict[str, DataFrame]", spark: "SparkSession", options: dict[str, Any]) -> "DataFrame":
    """Alerts from reports, with the limits of the pipeline's file."""
    (reports,) = inputs.values()
    limits = Limits(
        speed_kmh=float(options.get("limit_kmh", Limits().speed_kmh)),
        idle_ms=round(60_000 * float(options.get("idle_minutes", Limits().idle_ms / 60_000))),
        silent_ms=round(1000 * float(options.get("silent_seconds", Limits().silent_ms / 1000))),
    )
    found = (
        reports.selectExpr("truck_id", "seq", "unix_millis(ts) AS ts_ms", "lat", "lon", "speed_kmh", "ts")
        .groupBy("truck_id")
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
    """Watches the trucks of one partition, one at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the one value that is kept per truck."""
        self._handle = handle
        self._state = handle.getValueState("truck", STATE_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take the reports of a batch in, in the order in which the truck made them."""
        state = self._remembered()
        # A shuffle may bring them in any order.
        reports = sorted(Report(row.seq, row.ts_ms, row.lat, row.lon, row.speed_kmh) for row in rows)
        for report in reports:
            state, alerts = follow(key[0], state, report, self._limits)
            for alert in alerts:
                yield _ALERT_ROW(*alert)
        if state is not None:
            self._keep(state)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Let time pass for a truck up to the moment its timer was set for."""
        state = self._remembered()
        if state is not None:
            now_ms = expiredTimerInfo.getExpiryTimeInMs()
            state, alerts = elapse(key[0], state, now_ms, self._limits)
            for alert in alerts:
                yield _ALERT_ROW(*alert)
            self._keep(state._replace(timer_ms=-1))

    def close(self) -> None:
        """Nothing is held."""

    def _remembered(self) -> TruckState | None:
        kept = self._state.get()
        return None if kept is None else TruckState(*kept)

    def _keep(self, state: TruckState) -> None:
        """Store the state, with a timer set that does not come too late."""
        wake_ms = wakes_at(state, self._limits)
        if wake_ms is not None and (state.timer_ms < 0 or wake_ms < state.timer_ms):
            if state.timer_ms >= 0:
                self._handle.deleteTimer(state.timer_ms)
            self._handle.registerTimer(wake_ms)
            state = state._replace(timer_ms=wake_ms)
        self._state.update(tuple(state))
