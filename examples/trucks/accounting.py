"""Keeps the fleet's account while it drives: sent = processed + dead-lettered, by every truck's report numbers.

    bin/headrace python examples/trucks/accounting.py --ledger ledger.json

Reads positions, dead letters and alerts as they are committed. Once the generator has written its ledger it waits until
all is there, or until nothing came for --patience seconds, and says what it found.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from account import Account, Verdict
from topics import ALERTS, DEAD_LETTERS, GPS, POSITIONS, TOPICS

from headrace import KafkaConsumer, TopicPartition

_POLL_MS = 250
_RECORDS_MAX = 5000
_TOLD_EVERY_S = 5.0
_QUIET_S = 2.0
"""How long nothing must come before a complete account is closed: alerts may follow the last position."""


class Position(msgspec.Struct):
    """What is needed of a position."""

    truck_id: str
    seq: int
    sent_ms: int


class AlertName(msgspec.Struct):
    """What is needed of an alert."""

    alert_id: str
    kind: str


class Auditor:
    """Feeds an account from the topics."""

    def __init__(self, bootstrap: str) -> None:
        self.account = Account()
        self._position = msgspec.json.Decoder(Position)
        self._alert = msgspec.json.Decoder(AlertName)
        self._consumer = KafkaConsumer(
            POSITIONS,
            DEAD_LETTERS,
            ALERTS,
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            default_api_timeout_ms=600_000,
        )

    def listen(self) -> bool:
        """Take in what has come; whether anything has."""
        batches = self._consumer.poll(timeout_ms=_POLL_MS, max_records=_RECORDS_MAX)
        now_ms = round(time.time() * 1000)
        for place, records in batches.items():
            for record in records:
                self._take(place.topic, record, now_ms)
        return bool(batches)

    def _take(self, topic: str, record: Any, now_ms: int) -> None:
        if topic == POSITIONS:
            position = self._position.decode(record.value)
            self.account.add_position(position.truck_id, position.seq, now_ms - position.sent_ms)
        elif topic == ALERTS:
            alert = self._alert.decode(record.value)
            self.account.add_alert(alert.alert_id, alert.kind)
        else:
            # Whoever else sends garbage to the trucks' topic does not number it, and is no truck.
            for seq in (value for name, value in record.headers if name == "seq"):
                self.account.add_dead_letter(record.key.decode(), int(seq))

    def records_stored(self) -> int:
        """How many records the raw topic holds, repeated ones with the others."""
        places = [TopicPartition(GPS, number) for number in range(TOPICS[GPS][0])]
        return sum(self._consumer.end_offsets(places).values())

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


def audit(auditor: Auditor, ledger_path: Path, *, patience_s: float) -> dict[str, Any]:
    """Listen until the ledger is there and fulfilled, or nothing comes any more; the ledger."""
    ledger: dict[str, Any] | None = None
    last = told = time.monotonic()
    while True:
        came = auditor.listen()
        now = time.monotonic()
        if came:
            last = now
        if now - told >= _TOLD_EVERY_S:
            told = now
            account = auditor.account
            print(f"{account.processed} processed, {account.dead_lettered} dead-lettered", file=sys.stderr, flush=True)
        if ledger is None:
            if ledger_path.exists():
                ledger = json.loads(ledger_path.read_text())
                last = now
        elif now - last > (_QUIET_S if auditor.account.is_complete(ledger["reports"]) else patience_s):
            return ledger


def show(verdict: Verdict, stored: int, ledger: dict[str, Any]) -> None:
    """The account in words."""
    print(f"sent             {verdict.sent} reports ({ledger['sent']} records, {stored} stored)")
    print(f"processed        {verdict.processed}")
    print(f"dead-lettered    {verdict.dead_lettered}")
    print(f"alerts           {sum(verdict.alerts.values())}")
    for kind, count in verdict.alerts.items():
        print(f"  {kind:<14} {count}")
    print(f"end to end       p50 {verdict.latency_p50_ms} ms, p99 {verdict.latency_p99_ms} ms")
    if verdict.is_whole:
        print("Nothing is lost, nothing came twice: sent = processed + dead-lettered.")
        return
    print(
        f"{verdict.missing} reports are missing, {verdict.twice} came twice, {verdict.alerts_twice} alerts came twice."
    )
    print(f"Missing are, for example: {', '.join(verdict.examples) or 'none'}")


def main() -> int:
    """Parse and audit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092"))
    parser.add_argument("--ledger", type=Path, required=True, help="the file the generator writes at its end")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds without a record that end the wait")
    parser.add_argument("--report", type=Path, help="a file for the result as JSON")
    options = parser.parse_args()
    auditor = Auditor(options.bootstrap_server)
    ledger = audit(auditor, options.ledger, patience_s=options.patience)
    verdict = auditor.account.verdict(ledger["reports"])
    stored = auditor.records_stored()
    auditor.close()
    if options.report:
        options.report.write_text(json.dumps({**asdict(verdict), "stored": stored, "whole": verdict.is_whole}))
    show(verdict, stored, ledger)
    return 0 if verdict.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
