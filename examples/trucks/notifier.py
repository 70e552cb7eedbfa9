"""Tells of every alert once: prints it, or posts it to a webhook.

    bin/headrace python examples/trucks/notifier.py
    bin/headrace python examples/trucks/notifier.py --webhook https://example.org/alerts --journal notified.txt

An alert is delivered, then noted in the journal by its id, then its offset is committed. Whoever is killed in between
finds the journal again and repeats nothing. The one moment left, between a post and its note, is covered by the header
Idempotency-Key: the id is the same both times.
"""

import argparse
import os
import signal
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError

import msgspec
from dashboard_view import alert_words
from topics import ALERTS, make_topics

from headrace import KafkaConsumer

_POLL_MS = 250
_BATCH_MAX = 100
_POST_S = 10.0
_SESSION_MS = 6000
"""How long the group waits for a notifier that died before its successor gets the alerts."""
_REMEMBERED_MAX = 1_000_000
_WAIT_S = (0.2, 1.0, 5.0)

Deliver = Callable[[dict[str, Any]], None]


class Journal:
    """The ids of alerts that were delivered, kept in a file so that a restart knows them."""

    def __init__(self, path: Path) -> None:
        known = path.read_bytes() if path.exists() else b""
        # A line without an end is one that was being written when the machine stopped: it does not count.
        whole = known[: known.rfind(b"\n") + 1]
        self._known = dict.fromkeys(whole.decode().splitlines()[-_REMEMBERED_MAX:])
        self._file = path.open("ab")
        self._file.truncate(len(whole))

    def __contains__(self, alert_id: str) -> bool:
        return alert_id in self._known

    def add(self, alert_ids: list[str]) -> None:
        """Note them; they are on disk when this returns."""
        self._known |= dict.fromkeys(alert_ids)
        self._file.write("".join(f"{alert_id}\n" for alert_id in alert_ids).encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def print_alert(alert: dict[str, Any]) -> None:
    """Tell a person."""
    print(f"{alert['at']} {alert['truck_id']} {alert_words(alert)}", flush=True)


def poster(address: str, ended: threading.Event) -> Deliver:
    """Tell a web service; tries again until it takes the alert or we are ended."""
    if not address.startswith(("http://", "https://")):
        raise SystemExit(f"'{address}' is no address to post to: it begins with http:// or https://")

    def post(alert: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": alert["alert_id"].encode().hex()}
        request = urllib.request.Request(address, msgspec.json.encode(alert), headers)  # noqa: S310 - checked above
        attempt = 0
        while True:
            try:
                urllib.request.urlopen(request, timeout=_POST_S).close()  # noqa: S310 - checked above
                return
            except (URLError, TimeoutError) as problem:
                print(f"{address}: {problem}; trying again", file=sys.stderr)
                if ended.wait(_WAIT_S[min(attempt, len(_WAIT_S) - 1)]):
                    raise SystemExit(1) from problem
                attempt += 1

    return post


def notify(consumer: KafkaConsumer, journal: Journal, deliver: Deliver, ended: threading.Event) -> None:
    """Deliver, note, commit, in this order."""
    while not ended.is_set():
        batches = consumer.poll(timeout_ms=_POLL_MS, max_records=_BATCH_MAX)
        for records in batches.values():
            for record in records:
                alert = msgspec.json.decode(record.value)
                if alert["alert_id"] not in journal:
                    deliver(alert)
                    journal.add([alert["alert_id"]])
        if batches:
            consumer.commit()


def main() -> int:
    """Parse and notify."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092"))
    parser.add_argument("--webhook", help="where alerts are posted, instead of printing them")
    parser.add_argument("--journal", type=Path, default=Path("notified.txt"), help="remembers what was delivered")
    parser.add_argument("--group", default="notifier")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    make_topics(options.bootstrap_server)
    deliver = poster(options.webhook, ended) if options.webhook else print_alert
    journal = Journal(options.journal)
    with KafkaConsumer(
        ALERTS,
        bootstrap_servers=options.bootstrap_server,
        group_id=options.group,
        session_timeout_ms=_SESSION_MS,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        default_api_timeout_ms=600_000,
    ) as consumer:
        notify(consumer, journal, deliver, ended)
    journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
