"""Which events of a truck are worth an alert: a state, a report in, a state and alerts out.

What a truck's alerts are depends on its reports alone, never on how they were cut into batches: time passes for a truck
when its next report is later, or when a timer says so, and both ways find the same events. An event has a name made of
the truck, the kind and the report it began with, so a repeated alert is recognised by everybody.
"""

from collections.abc import Iterator
from typing import NamedTuple

from geography import fences_at

SPEEDING, IDLE, SILENT, ENTER, LEAVE = "speeding", "idle", "silent", "geofence_enter", "geofence_leave"
KINDS = (SPEEDING, IDLE, SILENT, ENTER, LEAVE)

STANDING_KMH = 3.0
_NEVER = -1


class Limits(NamedTuple):
    """What is too fast, too long at rest, and too long without a word."""

    speed_kmh: float = 90.0
    idle_ms: int = 600_000
    silent_ms: int = 60_000


class Report(NamedTuple):
    """One report of a truck."""

    seq: int
    ts_ms: int
    lat: float
    lon: float
    speed_kmh: float


class TruckState(NamedTuple):
    """What is remembered of a truck between its reports; it is stored as it stands here."""

    seq: int
    ts_ms: int
    lat: float
    lon: float
    is_speeding: bool
    idle_seq: int
    """The report at which it stopped, or -1 while it drives."""
    idle_ms: int
    told_idle: bool
    told_silent: bool
    fences: str
    """The fences it is in, in order, separated by commas."""


class Alert(NamedTuple):
    """An event of interest."""

    alert_id: str
    truck_id: str
    kind: str
    detail: str
    at_ms: int
    lat: float
    lon: float
    seq: int


ALERT_SCHEMA = (
    "alert_id string, truck_id string, kind string, detail string, at_ms bigint, lat double, lon double, seq bigint"
)


def follow(truck_id: str, state: TruckState | None, report: Report, limits: Limits) -> tuple[TruckState, list[Alert]]:
    """Take a report in; one that was taken before, or is older than the newest, changes nothing.

    This runs for every report of the fleet, so what a report usually is costs little: nothing due, nothing crossed.
    """
    seq, ts_ms, lat, lon, speed_kmh = report
    fences = fences_at(lat, lon)
    is_speeding = speed_kmh > limits.speed_kmh
    stands = speed_kmh < STANDING_KMH
    if state is None:
        # Where a truck is first seen it has not just come to.
        idle_seq = seq if stands else _NEVER
        return TruckState(seq, ts_ms, lat, lon, is_speeding, idle_seq, ts_ms, False, False, fences), []
    if seq <= state.seq:
        return state, []
    state, alerts = elapse(truck_id, state, ts_ms, limits)
    if (is_speeding and not state.is_speeding) or fences != state.fences:
        alerts += _events(truck_id, state, report, fences, limits)
    told_idle = False
    if not stands:
        idle_seq, idle_ms = _NEVER, ts_ms
    elif state.idle_seq == _NEVER:
        idle_seq, idle_ms = seq, ts_ms
    else:
        idle_seq, idle_ms, told_idle = state.idle_seq, state.idle_ms, state.told_idle
    return TruckState(seq, ts_ms, lat, lon, is_speeding, idle_seq, idle_ms, told_idle, False, fences), alerts


def go_to(state: TruckState, seq: int, ts_ms: int, lat: float, lon: float) -> TruckState:
    """Go to the last report of a stretch (stretches.py) whose first was followed, unless it was passed already."""
    if seq <= state.seq:
        return state
    return TruckState(seq, ts_ms, lat, lon, state.is_speeding, _NEVER, ts_ms, False, False, state.fences)


def _events(truck_id: str, state: TruckState, report: Report, fences: str, limits: Limits) -> Iterator[Alert]:
    """What the report itself says."""
    at = (report.ts_ms, report.lat, report.lon, report.seq)
    if report.speed_kmh > limits.speed_kmh and not state.is_speeding:
        detail = f"{report.speed_kmh:.0f} km/h where {limits.speed_kmh:.0f} are allowed"
        yield Alert(f"{truck_id}:{SPEEDING}:{report.seq}", truck_id, SPEEDING, detail, *at)
    if fences != state.fences:
        before, now = set(state.fences.split(",")) - {""}, set(fences.split(",")) - {""}
        for kind, crossed in ((LEAVE, before - now), (ENTER, now - before)):
            for fence in sorted(crossed):
                yield Alert(f"{truck_id}:{kind}:{fence}:{report.seq}", truck_id, kind, fence, *at)


def elapse(truck_id: str, state: TruckState, now_ms: int, limits: Limits) -> tuple[TruckState, list[Alert]]:
    """Let time pass without a report: a truck that was silent, or stood still, for too long is told of once."""
    alerts = []
    due_ms = state.idle_ms + limits.idle_ms
    if state.idle_seq != _NEVER and not state.told_idle and due_ms <= now_ms:
        detail = f"has stood still for {limits.idle_ms // 60_000} min"
        alerts.append(_told(truck_id, IDLE, detail, state, state.idle_seq, due_ms))
        state = state._replace(told_idle=True)
    due_ms = state.ts_ms + limits.silent_ms
    if not state.told_silent and due_ms <= now_ms:
        detail = f"has said nothing for {limits.silent_ms // 1000} s"
        alerts.append(_told(truck_id, SILENT, detail, state, state.seq, due_ms))
        state = state._replace(told_silent=True)
    return state, alerts


def _told(truck_id: str, kind: str, detail: str, state: TruckState, seq: int, at_ms: int) -> Alert:
    return Alert(f"{truck_id}:{kind}:{seq}", truck_id, kind, detail, at_ms, state.lat, state.lon, seq)


def wakes_at(state: TruckState, limits: Limits) -> int | None:
    """When time alone makes the next event of a truck; None if nothing is left to tell of."""
    dues = []
    if state.idle_seq != _NEVER and not state.told_idle:
        dues.append(state.idle_ms + limits.idle_ms)
    if not state.told_silent:
        dues.append(state.ts_ms + limits.silent_ms)
    return min(dues, default=None)
