"""What the dashboard shows: the fleet as records tell it, and its picture as lines of text. Pure."""

from collections import Counter, deque
from typing import Any, NamedTuple

from geography import distance_km
from places import PLACES

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
_ARROWS = "↑↗→↘↓↙←↖"
_FEED_MAX = 100
_OFFLINE_MS = 60_000
_STANDING_KMH = 3.0
_COLOURS = {"driving": GREEN, "standing": YELLOW, "offline": RED, "": ""}
_FEED_SHARE = 3
"""One line of so many is the feed's."""
_REGIONS_SHOWN = 4


class TruckRow(NamedTuple):
    """A truck as it was last seen."""

    truck_id: str
    ts_ms: int
    lat: float
    lon: float
    speed_kmh: float
    heading: float


class FleetView:
    """Everything the dashboard knows."""

    def __init__(self) -> None:
        self.trucks: dict[str, TruckRow] = {}
        self.alerts: Counter[str] = Counter()
        self.feed: deque[str] = deque(maxlen=_FEED_MAX)
        self.last_alert: dict[str, str] = {}
        self.regions: dict[str, tuple[str, int, float]] = {}
        self.dead_letters = 0
        self.positions = 0
        self.newest_ms = 0
        self.latency_ms = 0

    def add_position(self, row: TruckRow, latency_ms: int) -> None:
        """A truck reported; an older report than the known one is history."""
        self.positions += 1
        self.latency_ms = latency_ms
        self.newest_ms = max(self.newest_ms, row.ts_ms)
        known = self.trucks.get(row.truck_id)
        if known is None or known.ts_ms < row.ts_ms:
            self.trucks[row.truck_id] = row

    def add_alert(self, alert: dict[str, Any]) -> None:
        """Something happened."""
        self.alerts[alert["kind"]] += 1
        words = alert_words(alert)
        self.last_alert[alert["truck_id"]] = words
        self.feed.append(f"{alert['at'][11:19]} {alert['truck_id']} {words}")

    def add_stats(self, stats: dict[str, Any]) -> None:
        """A window closed."""
        if stats["level"] == "region":
            known = self.regions.get(stats["name"], ("", 0, 0.0))
            if known[0] <= stats["window_start"]:
                self.regions[stats["name"]] = (stats["window_start"], stats["trucks"], stats["avg_kmh"])

    def status(self, row: TruckRow) -> str:
        """Driving, standing or offline, by the fleet's own time."""
        if self.newest_ms - row.ts_ms > _OFFLINE_MS:
            return "offline"
        return "standing" if row.speed_kmh < _STANDING_KMH else "driving"

    def counts(self) -> Counter[str]:
        """How many trucks drive, stand and are offline."""
        return Counter(map(self.status, self.trucks.values()))


_WORDS = {
    "speeding": "drives too fast: {detail}",
    "idle": "{detail}",
    "silent": "{detail}",
    "geofence_enter": "enters {detail}",
    "geofence_leave": "leaves {detail}",
}


def alert_words(alert: dict[str, Any]) -> str:
    """An alert as a person would say it."""
    return _WORDS.get(alert["kind"], "{kind}: {detail}").format(kind=alert["kind"], detail=alert["detail"])


def summary_line(view: FleetView, rate: float) -> str:
    """The fleet in one line, for where there is no screen."""
    counts = view.counts()
    alerts = ", ".join(f"{kind} {count}" for kind, count in sorted(view.alerts.items())) or "none"
    return (
        f"{len(view.trucks)} trucks: {counts['driving']} driving, {counts['standing']} standing, "
        f"{counts['offline']} offline; {view.positions} positions ({rate:.0f}/s), {view.dead_letters} dead letters; "
        f"alerts: {alerts}"
    )


def picture(view: FleetView, *, rate: float, width: int, height: int) -> list[tuple[str, str]]:
    """The screen: lines and their colours, as many as fit."""
    alerts = "  ".join(f"{kind} {count}" for kind, count in sorted(view.alerts.items())) or "none yet"
    counts = view.counts()
    trucks = f"{counts['driving']} driving   {counts['standing']} standing   {counts['offline']} offline"
    head = [
        (f"Truck fleet   {len(view.trucks)} trucks   {rate:.0f} positions/s   {view.latency_ms} ms behind", BOLD),
        (f"{trucks}   {view.positions} positions   {view.dead_letters} dead letters", ""),
        (f"alerts: {alerts}", ""),
        (_regions_line(view), DIM),
        ("", ""),
        (f"{'TRUCK':<9}{'STATUS':<10}{'KM/H':>5}    {'NEAR':<28}LAST ALERT", DIM),
    ]
    feed_lines = max(1, (height - len(head) - 2) // _FEED_SHARE)
    rows = max(0, height - len(head) - 2 - feed_lines)
    table = [_truck_line(view, row) for row in _of_interest(view)[:rows]]
    table += [("", "")] * (rows - len(table))
    feed = [(line, "") for line in list(view.feed)[-feed_lines:]]
    lines = [*head, *table, ("", ""), ("ALERTS", DIM), *feed]
    return [(line[:width], colour) for line, colour in lines[:height]]


def _regions_line(view: FleetView) -> str:
    busiest = sorted(view.regions.items(), key=lambda one: -one[1][1])[:_REGIONS_SHOWN]
    return "   ".join(f"{name}: {trucks} trucks, {kmh:.0f} km/h" for name, (_, trucks, kmh) in busiest)


def _of_interest(view: FleetView) -> list[TruckRow]:
    """Trucks that something was said of come first, the latest before the others; then by name."""
    told = {line.split()[1]: place for place, line in enumerate(view.feed)}
    return sorted(view.trucks.values(), key=lambda row: (-told.get(row.truck_id, -1), row.truck_id))


def _truck_line(view: FleetView, row: TruckRow) -> tuple[str, str]:
    status = view.status(row)
    near, far_km = min(
        ((place.name, distance_km((row.lat, row.lon), place[2:])) for place in PLACES.values()), key=lambda one: one[1]
    )
    where = f"{near} ({far_km:.0f} km)"
    arrow = _ARROWS[round(row.heading / 45) % len(_ARROWS)]
    told = view.last_alert.get(row.truck_id, "")
    return f"{row.truck_id:<9}{status:<10}{row.speed_kmh:>5.0f} {arrow}  {where:<28}{told}", _COLOURS[status]
