"""The fleet's map: trucks that move, alerts, and the log read again from a time."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from headrace import KafkaAdmin, KafkaProducer, NewTopic

EVERY_MS = 20_000
TRUCKS = {"T-0001": (50.11, 8.68, 45.0), "T-0002": (52.37, 9.73, 90.0), "T-0003": (48.86, 2.35, 180.0)}
"""Latitude, longitude and heading of each, now."""
EXAMPLE = str(Path(__file__).parents[2] / "examples/trucks")


@pytest.fixture
def producer(broker, console):
    """Writes to the fleet's topics, which are there for one test."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("trucks_gps", 4, 1), NewTopic("trucks_alerts", 1, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        yield producer
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["trucks_gps", "trucks_alerts"])


@pytest.fixture
def fleet(producer):
    """Ten minutes of three trucks and their alerts; what sends more."""
    fleet = Fleet(producer)
    fleet.drive(600_000)
    return fleet


class Fleet:
    """Sends what the trucks of the example would."""

    def __init__(self, producer):
        self._producer = producer
        self.now_ms = int(time.time() * 1000)

    def drive(self, back_ms):
        """All reports of the time up to now, and an alert each minute."""
        for at_ms in range(self.now_ms - back_ms, self.now_ms + 1, EVERY_MS):
            self.report(at_ms)
        for at_ms in range(self.now_ms - back_ms, self.now_ms, 60_000):
            self.alert(at_ms)
        self._producer.send("trucks_gps", b'{"truck_id": "T-0001", "lat"')
        self._producer.flush()

    def report(self, at_ms):
        """One report of each truck: half a degree north for an hour."""
        for truck_id, (lat, lon, heading) in TRUCKS.items():
            moved = (at_ms - self.now_ms) / 3_600_000
            value = {
                "truck_id": truck_id, "lat": lat + moved * 0.5, "lon": lon + moved, "speed_kmh": 75.0,
                "heading": heading, "ts": written(at_ms), "seq": at_ms // EVERY_MS,
            }  # fmt: skip
            self._send("trucks_gps", truck_id, value, at_ms)

    def alert(self, at_ms):
        """Something happened to the first truck."""
        value = {
            "alert_id": f"T-0001:speeding:{at_ms}", "truck_id": "T-0001", "kind": "speeding",
            "detail": "104 km/h where 90 are allowed", "at": written(at_ms), "lat": 50.0, "lon": 8.6, "seq": 1,
        }  # fmt: skip
        self._send("trucks_alerts", "T-0001", value, at_ms)

    def _send(self, topic, key, value, at_ms):
        self._producer.send(topic, json.dumps(value).encode(), key=key.encode(), timestamp_ms=at_ms)

    def flush(self):
        """Everything sent is there."""
        self._producer.flush()


@pytest.fixture
def whole_fleet(producer, monkeypatch):
    """A quarter of an hour of the example's fleet, garbled reports and repeated ones among it, with its alerts."""
    monkeypatch.syspath_prepend(EXAMPLE)
    from alert_rules import Limits, Report, follow
    from fleet import Fleet as ExampleFleet

    now_ms = int(time.time() * 1000)
    start_ms, count = now_ms - 900_000, 240 if os.environ.get("HEADRACE_SCREENSHOTS") else 75
    example = ExampleFleet(count, seed=3, start_ms=start_ms)
    states = {}
    for turn in range(900_000 * count // EVERY_MS):
        at_ms = start_ms + turn * EVERY_MS // count
        for record in example.until(at_ms):
            key = record.truck_id.encode()
            producer.send("trucks_gps", record.value, key=key, timestamp_ms=at_ms)
            try:
                value = msgspec.json.decode(record.value or b"", type=Sighting)
            except msgspec.DecodeError:
                continue
            report = Report(value.seq, at_ms, value.lat, value.lon, value.speed_kmh)
            states[key], alerts = follow(record.truck_id, states.get(key), report, Limits())
            for alert in alerts:
                document = {**alert._asdict(), "at": written(alert.at_ms)}
                producer.send("trucks_alerts", msgspec.json.encode(document), key=key, timestamp_ms=at_ms + 300)
    producer.flush()
    return count


class Sighting(msgspec.Struct):
    """A report that a pipeline would take."""

    seq: int
    lat: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    lon: float
    speed_kmh: float


def written(at_ms):
    """A time as reports carry it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


_NEAREST = """
    const far = (one) => Math.hypot(one.x - 480, one.y - 380);
    fleetMap.select([...fleetMap.drawn].sort((one, other) => far(one) - far(other))[0].id)
"""
"""Chooses a truck in the middle of the map."""


_STATES = """
    ["driving", "speeding", "standing", "silent"].map(
        (one) => Number(document.querySelector(`[data-state=${one}]`).innerText))
"""
"""How many trucks are in each state."""


def drawn(page):
    """Where the trucks stand on the screen."""
    return {one["id"]: (one["x"], one["y"]) for one in page.evaluate("window.fleetMap?.drawn ?? []")}


def clock_ms(page):
    """What the clock shows, as soon as it does: the trucks are drawn a moment before."""
    return datetime.fromisoformat(page.get_attribute(".fleet-clock[datetime]", "datetime")).timestamp() * 1000


def test_no_fleet(tab, broker):
    """Where there are no trucks, does the map say what fills this map, and that the demo does not?"""
    page = tab.open("/fleet")

    page.wait_for_selector(".fleet-notice:has-text('There are no trucks here yet')")
    said = page.inner_text(".fleet-notice")
    assert f"headrace python examples/trucks/generator.py --bootstrap-server {broker.bootstrap}" in said
    assert f"headrace pipeline run examples/trucks/fleet.toml --bootstrap-server {broker.bootstrap}" in said
    assert "headrace demo does not fill this map" in said


def test_no_reports_yet(tab, producer, eventually):
    """Does the map say that it waits while no truck has reported, and no longer once one has?"""
    page = tab.open("/fleet")
    page.wait_for_selector(".fleet-notice:has-text('No truck has reported lately')")

    sender = Fleet(producer)
    sender.report(sender.now_ms)
    sender.flush()

    eventually(lambda: not page.inner_text(".fleet-notice") and page.inner_text('[data-show="trucks"]') == "3")


@pytest.mark.usefixtures("fleet")
def test_the_map_moves(tab, eventually):
    """Do all trucks stand on the map, and move between their reports?"""
    page = tab.open("/fleet?lat=50.3&lon=7.5&zoom=2000&truck=T-0001")
    page.wait_for_selector(".fleet[data-connection=live]")
    page.evaluate("window.fleetMap.home()")
    eventually(lambda: set(drawn(page)) == set(TRUCKS))
    before = drawn(page)

    eventually(lambda: all(drawn(page)[truck] != before[truck] for truck in TRUCKS))

    eventually(lambda: page.inner_text('[data-show="trucks"]') == "3")  # drawn in every frame, counted now and then
    assert page.inner_text(".fleet-card b") == "T-0001"
    assert "/console/topics/trucks_gps?from=live&filter=key" in page.get_attribute(".fleet-card a", "href")


def test_alerts_and_reports_arrive(tab, fleet, eventually):
    """Does an alert stand in the feed as soon as it is written, and a report correct its truck?"""
    page = tab.open("/fleet")
    page.wait_for_selector(".fleet[data-connection=live]")
    page.wait_for_selector(".fleet-alerts li")
    before = int(page.inner_text('.fleet-figures [data-show="alerts"]'))

    fleet.alert(int(time.time() * 1000))
    fleet.flush()

    eventually(lambda: int(page.inner_text('.fleet-figures [data-show="alerts"]')) == before + 1)


@pytest.mark.usefixtures("fleet")
def test_a_replay_goes_back(tab, eventually):
    """Does the slider read the log again from an earlier time, does the clock go on from there, and can one return?"""
    page = tab.open("/fleet")
    page.wait_for_selector(".fleet[data-connection=live]")
    eventually(lambda: set(drawn(page)) == set(TRUCKS))
    live, places = clock_ms(page), drawn(page)

    page.focus(".fleet-slider")
    page.evaluate(
        "const slider = document.querySelector('.fleet-slider'); slider.value = 300;"
        "slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change'))"
    )
    page.wait_for_selector(".fleet[data-mode=replay]")

    eventually(lambda: clock_ms(page) < live - 60_000)
    eventually(lambda: set(drawn(page)) == set(TRUCKS) and drawn(page) != places)
    begun = clock_ms(page)
    eventually(lambda: clock_ms(page) > begun)
    assert "at=" in page.evaluate("location.search") or page.wait_for_function("location.search.includes('at=')")
    page.click(".fleet-live")
    page.wait_for_selector(".fleet[data-mode=live]")
    eventually(lambda: clock_ms(page) >= live)


@pytest.mark.usefixtures("fleet")
def test_the_slider_lets_go(tab, eventually):
    """Does the key l go live where the slider has the focus, too?"""
    page = tab.open("/fleet")
    page.wait_for_selector(".fleet[data-connection=live]")
    page.focus(".fleet-slider")
    page.keyboard.press("Home")
    page.wait_for_selector(".fleet[data-mode=replay]")

    page.keyboard.press("l")

    page.wait_for_selector(".fleet[data-mode=live]")
    eventually(lambda: page.input_value(".fleet-slider") == "1000")


def test_a_whole_fleet(tab, phone, whole_fleet, eventually):
    """Are nearly all trucks of the example's fleet counted, each in one state, although devices break?"""
    page = tab.open("/fleet")
    eventually(lambda: int(page.inner_text('[data-show="trucks"]')) > 0.95 * whole_fleet)

    # All at one moment: trucks go from one to another.
    states = page.evaluate(_STATES)
    assert 0.95 * whole_fleet < sum(states) <= whole_fleet
    assert states[0] > 0.5 * whole_fleet
    eventually(lambda: page.locator(".fleet-alerts li").count() > 5)
    tab.shot("fleet.jpg")
    page.click(".hr-theme")
    page.click(".hr-theme")
    page.wait_for_selector("body.body--dark")
    page.evaluate("fleetMap.show({lat: 50.25, lon: 8.3})")
    eventually(lambda: 0 < len(drawn(page)) < whole_fleet / 2)
    page.evaluate(_NEAREST)
    page.wait_for_selector(".fleet-card:not([hidden])")
    tab.shot("fleet-dark.jpg")
    phone.open("/fleet")
    eventually(lambda: int(phone.page.inner_text('[data-show="trucks"]')) > 0.95 * whole_fleet)
    phone.shot("phone-fleet.jpg")


@pytest.mark.usefixtures("fleet")
def test_keys_and_dark(tab, eventually):
    """Can the map be moved by keys alone, and is it dark where the page is?"""
    page = tab.open("/fleet")
    page.wait_for_selector(".fleet[data-connection=live]")
    page.focus(".fleet-map")
    scale = page.evaluate("fleetMap.view.scale")
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("fleetMap.view.scale") > scale
    light = page.evaluate("fleetMap.colours.sea")
    page.keyboard.press(" ")
    page.wait_for_selector(".fleet[data-paused=yes]")

    page.click(".hr-theme")
    page.click(".hr-theme")

    eventually(lambda: page.evaluate("fleetMap.colours.sea") != light)


@pytest.mark.usefixtures("fleet")
def test_phone_map(phone, eventually):
    """Does the map fit a phone, with nothing to scroll sideways?"""
    page = phone.open("/fleet")
    page.wait_for_selector(".fleet[data-connection=live]")

    eventually(lambda: set(drawn(page)) == set(TRUCKS))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
