"""What the dashboard shows."""

from dashboard_view import FleetView, TruckRow, picture, summary_line


def filled():
    view = FleetView()
    view.add_position(TruckRow("T-0001", 100_000, 52.52, 13.405, 80.0, 90.0), latency_ms=150)
    view.add_position(TruckRow("T-0002", 100_000, 48.86, 2.35, 0.0, 180.0), latency_ms=150)
    view.add_position(TruckRow("T-0003", 20_000, 41.9, 12.5, 70.0, 0.0), latency_ms=150)
    view.add_alert(
        {"truck_id": "T-0002", "kind": "geofence_enter", "detail": "Paris", "at": "2026-11-15T20:00:20.000Z"}
    )
    view.add_stats(
        {"level": "region", "name": "France", "window_start": "2026-11-15T20:00", "trucks": 7, "avg_kmh": 61.2}
    )
    return view


def test_counters():
    """Are driving, standing and offline trucks told apart by the fleet's own time?"""
    line = summary_line(filled(), rate=12.4)

    assert (
        "3 trucks: 1 driving, 1 standing, 1 offline; 3 positions (12/s), 0 dead letters; alerts: geofence_enter 1"
        == line
    )


def test_older_reports_are_history():
    """Does a position that is older than the known one move no truck?"""
    view = filled()
    view.add_position(TruckRow("T-0001", 90_000, 0.0, 0.0, 80.0, 90.0), latency_ms=1)

    assert 52.52 == view.trucks["T-0001"].lat


def test_picture():
    """Does the screen show what happened last first, where trucks are, and the feed of alerts?"""
    lines = [line for line, _ in picture(filled(), rate=3.0, width=120, height=20)]

    assert 20 >= len(lines)
    assert "Truck fleet   3 trucks   3 positions/s   150 ms behind" == lines[0]
    assert "France: 7 trucks, 61 km/h" == lines[3]
    assert ["T-0002", "T-0001", "T-0003"] == [line.split()[0] for line in lines[6:9]]
    assert lines[6].startswith("T-0002   standing      0 ↓  Paris (0 km)")
    assert lines[6].endswith("enters Paris")
    assert "20:00:20 T-0002 enters Paris" == lines[-1]


def test_picture_fits():
    """Is no line wider than the terminal, and are there no more lines than it has?"""
    for width, height in ((20, 8), (80, 10), (200, 60)):
        lines = picture(filled(), rate=0.0, width=width, height=height)

        assert len(lines) <= height
        assert all(len(line) <= width for line, _ in lines)
