"""The fleet on a terminal: a live table, counters and the latest alerts.

    bin/headrace python examples/trucks/dashboard.py
    bin/headrace python examples/trucks/dashboard.py --once

An application of its own: it knows the topics and nothing else. Where nobody looks at a terminal it prints lines.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
import time
from collections import deque
from datetime import datetime
from typing import Any

import msgspec
from dashboard_view import DIM, FleetView, TruckRow, picture, summary_line
from topics import ALERTS, DEAD_LETTERS, POSITIONS, STATS, make_topics

from headrace import KafkaConsumer

_FRAME_S = 0.5
_LINE_S = 5.0
_POLL_MS = 100
_QUIET_MS = 2000
_RATE_S = 5.0
_SCREEN, _SCREEN_END = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_REST = "\033[H", "\033[K", "\033[J"


class Feed:
    """Brings records into the view."""

    def __init__(self, bootstrap: str, view: FleetView) -> None:
        make_topics(bootstrap)
        self.view = view
        self._rates: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._consumer = KafkaConsumer(
            POSITIONS,
            ALERTS,
            DEAD_LETTERS,
            STATS,
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            default_api_timeout_ms=600_000,
        )

    def listen(self, timeout_ms: int = _POLL_MS) -> bool:
        """Take in what has come; whether anything has."""
        batches = self._consumer.poll(timeout_ms=timeout_ms, max_records=5000)
        now_ms = round(time.time() * 1000)
        for place, records in batches.items():
            for record in records:
                self._take(place.topic, record.value, now_ms)
        return bool(batches)

    def _take(self, topic: str, value: bytes | None, now_ms: int) -> None:
        if topic == DEAD_LETTERS:
            self.view.dead_letters += 1
        elif value is not None:
            document = msgspec.json.decode(value)
            if topic == POSITIONS:
                self.view.add_position(_row(document), now_ms - document["sent_ms"])
            elif topic == ALERTS:
                self.view.add_alert(document)
            else:
                self.view.add_stats(document)

    def rate(self) -> float:
        """Positions a second, over the last few seconds."""
        now = time.monotonic()
        self._rates.append((now, self.view.positions))
        while len(self._rates) > 2 and now - self._rates[0][0] > _RATE_S:
            self._rates.popleft()
        (begin, before), (end, after) = self._rates[0], self._rates[-1]
        return (after - before) / max(end - begin, 0.001)

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def _row(document: dict[str, Any]) -> TruckRow:
    ts_ms = round(datetime.fromisoformat(document["ts"]).timestamp() * 1000)
    return TruckRow(
        document["truck_id"], ts_ms, document["lat"], document["lon"], document["speed_kmh"], document["heading"]
    )


def show_once(feed: Feed) -> None:
    """Read what is there and print one picture of it."""
    while feed.listen(_QUIET_MS):
        pass
    for line, _ in picture(feed.view, rate=0.0, width=120, height=40):
        print(line.rstrip())


def show_lines(feed: Feed, ended: threading.Event) -> None:
    """A line every few seconds, and every alert as it comes."""
    told = time.monotonic()
    alerts = 0
    while not ended.is_set():
        feed.listen()
        for line in (
            list(feed.view.feed)[alerts - feed.view.alerts.total() :] if feed.view.alerts.total() > alerts else ()
        ):
            print(line)
        alerts = feed.view.alerts.total()
        if time.monotonic() - told >= _LINE_S:
            told = time.monotonic()
            print(summary_line(feed.view, feed.rate()), flush=True)


def show_screen(feed: Feed, ended: threading.Event, note: str) -> None:
    """The whole terminal, twice a second; afterwards it is as it was."""
    drawn = 0.0
    sys.stdout.write(_SCREEN)
    try:
        while not ended.is_set():
            feed.listen()
            if time.monotonic() - drawn >= _FRAME_S:
                drawn = time.monotonic()
                size = shutil.get_terminal_size()
                height = size.lines - bool(note)
                lines = picture(feed.view, rate=feed.rate(), width=size.columns, height=height)
                if note:
                    lines += [("", "")] * (height - len(lines)) + [(note[: size.columns], DIM)]
                sys.stdout.write(_HOME + f"{_CLEAR_LINE}\r\n".join(_painted(*line) for line in lines) + _CLEAR_REST)
                sys.stdout.flush()
    finally:
        sys.stdout.write(_SCREEN_END)
        sys.stdout.flush()


def _painted(line: str, colour: str) -> str:
    return f"\033[{colour}m{line}\033[0m" if colour else line


def main() -> int:
    """Parse and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092"))
    parser.add_argument("--once", action="store_true", help="print what is known now, and end")
    parser.add_argument("--note", default="", help="a line for the bottom of the screen")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    feed = Feed(options.bootstrap_server, FleetView())
    try:
        if options.once:
            show_once(feed)
        elif sys.stdout.isatty():
            show_screen(feed, ended, options.note)
        else:
            show_lines(feed, ended)
    finally:
        feed.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
