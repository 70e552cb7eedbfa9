"""Drives a fleet: every truck reports every 20 seconds to trucks_gps, keyed by its id.

    bin/headrace python examples/trucks/generator.py --trucks 200 --speedup 20 --duration 60

Stops at the end of --duration, or at Ctrl-C; then everything sent is acknowledged, and the ledger says how much it was.
"""

import argparse
import gc
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from fleet import EVERY_MS, Burst, Fleet, FleetClock, Outgoing
from topics import GPS, make_topics

from headrace import KafkaProducer
from headrace.client.delivery import Delivery

_TURN_S = 0.05
"""How long to wait between two looks at the clock: short enough that nobody sees the fleet stutter."""
_LINGER_MS = 100
"""How long a report may wait for others of its partition: to store many at once costs no more than to store one."""
_TOLD_EVERY_S = 5.0
_FLUSH_S = 120.0


class Sender:
    """Sends records and counts what became of them."""

    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer
        self._under_way: deque[Delivery] = deque()
        self.sent = 0
        self.failed = 0
        self.last_problem = ""

    def send(self, record: Outgoing) -> None:
        """Hand a record over."""
        self._under_way.append(self._producer.send(GPS, record.value, key=record.key, headers=record.headers))
        self.sent += 1

    def settle(self) -> None:
        """Count the records whose fate is known."""
        waiting = self._under_way
        while waiting and waiting[0].is_done:
            done = waiting.popleft()
            if done.error is not None or done.refusal is not None:
                self.failed += 1
                self.last_problem = str(done.exception)

    def finish(self) -> None:
        """Wait until every record is safe, or has failed for good."""
        self._producer.flush(_FLUSH_S)
        self.settle()


def drive(fleet: Fleet, clock: FleetClock, sender: Sender, *, duration_s: float, ended: threading.Event) -> None:
    """Send what is due until the time is over or somebody ends it."""
    begin = time.monotonic()
    told_s = 0.0
    while not ended.wait(_TURN_S):
        elapsed_s = time.monotonic() - begin
        for record in fleet.until(clock.at(min(elapsed_s, duration_s))):
            sender.send(record)
            if ended.is_set():
                break
        sender.settle()
        if elapsed_s >= duration_s:
            return
        if elapsed_s - told_s >= _TOLD_EVERY_S:
            told_s = elapsed_s
            print(f"{elapsed_s:6.0f} s  {sender.sent} sent", file=sys.stderr)


def main() -> int:
    """Parse and drive."""
    options = _arguments()
    start_ms = round(time.time() * 1000) if options.start_ms is None else options.start_ms
    every_ms = round(options.every * 1000)
    burst = (
        Burst(at_s=options.burst_at, lasts_s=options.burst_for, records_per_s=options.rate) if options.rate else None
    )
    clock = FleetClock(start_ms=start_ms, speedup=options.speedup, count=options.trucks, every_ms=every_ms, burst=burst)
    fleet = Fleet(options.trucks, seed=options.seed, start_ms=start_ms, every_ms=every_ms)
    # The trucks stay, and no record leads back to itself: the garbage collector would look for nothing, and often.
    gc.freeze()
    gc.disable()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    make_topics(options.bootstrap_server)
    with KafkaProducer(
        bootstrap_servers=options.bootstrap_server,
        linger_ms=_LINGER_MS,
        compression_type="lz4",
        delivery_timeout_ms=600_000,
    ) as producer:
        sender = Sender(producer)
        drive(fleet, clock, sender, duration_s=options.duration or float("inf"), ended=ended)
        sender.finish()
    ledger = {"sent": sender.sent, "failed": sender.failed, "start_ms": start_ms, "reports": fleet.ledger()}
    if options.ledger:
        _write(Path(options.ledger), ledger)
    reports = sum(fleet.ledger().values())
    print(f"{reports} reports of {options.trucks} trucks sent, {sender.sent - reports} of them twice")
    if sender.failed:
        print(f"{sender.failed} records could not be sent: {sender.last_problem}", file=sys.stderr)
    return 1 if sender.failed else 0


def _write(path: Path, ledger: dict[str, Any]) -> None:
    """Whoever waits for the ledger must not find half of it."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(ledger))
    unfinished.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092"))
    parser.add_argument("--trucks", type=int, default=200)
    parser.add_argument("--every", type=float, default=EVERY_MS / 1000, help="seconds between two reports of a truck")
    parser.add_argument("--speedup", type=float, default=1.0, help="how much faster the fleet's clock runs")
    parser.add_argument("--duration", type=float, default=0.0, help="seconds to drive; 0 is until Ctrl-C")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start-ms", type=int, help="the fleet's time at the start, instead of now")
    parser.add_argument("--rate", type=float, default=0.0, help="records a second during a burst")
    parser.add_argument("--burst-at", type=float, default=0.0, help="the second at which the burst begins")
    parser.add_argument("--burst-for", type=float, default=60.0, help="how many seconds it lasts")
    parser.add_argument("--ledger", help="a file that says at the end what was sent")
    options = parser.parse_args()
    if options.trucks < 1 or options.every <= 0 or options.speedup <= 0 or options.rate < 0:
        parser.error("trucks, seconds, speedup and rate are positive numbers")
    return options


if __name__ == "__main__":
    sys.exit(main())
