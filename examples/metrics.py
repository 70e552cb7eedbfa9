"""Metrics: machines report what they measure, a monitor sums it up minute by minute and raises an alarm.

bin/headrace python examples/metrics.py [bootstrap servers]
"""

import os
import sys
import time
from collections import defaultdict
from itertools import islice
from statistics import mean

from headrace import KafkaConsumer, KafkaProducer

TOPIC = "machine-metrics"
MINUTE_MS = 60_000
TOO_BUSY = 0.9
# The load of two machines, measured every 20 seconds.
MEASURED = {"web-1": (0.20, 0.25, 0.30, 0.95, 0.97, 0.99), "web-2": (0.40, 0.45, 0.50, 0.40, 0.35, 0.30)}


def report(bootstrap: str, start_ms: int) -> None:
    """Every machine sends its measurements; a record carries the time of the measurement, not of the sending."""
    with KafkaProducer(bootstrap_servers=bootstrap, key_serializer="str", value_serializer="json") as producer:
        for machine, loads in MEASURED.items():
            for number, load in enumerate(loads):
                producer.send(TOPIC, {"load": load}, key=machine, timestamp_ms=start_ms + number * 20_000)


def watch(bootstrap: str, start_ms: int) -> None:
    """Average by machine and minute, and say who was too busy."""
    by_minute = defaultdict(list)
    with KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="monitor",
        auto_offset_reset="earliest",
        key_deserializer="str",
        value_deserializer="json",
    ) as records:
        for record in islice(records, sum(map(len, MEASURED.values()))):
            minute = (record.timestamp - start_ms) // MINUTE_MS
            by_minute[record.key, minute].append(record.value["load"])
    for (machine, minute), loads in sorted(by_minute.items()):
        alarm = "  too busy!" if mean(loads) > TOO_BUSY else ""
        print(f"{machine} minute {minute}: {mean(loads):.2f}{alarm}")


def main(bootstrap: str) -> None:
    """Report, then watch; they could as well run on different machines at the same time."""
    two_minutes_ago_ms = int(time.time() * 1000) - 2 * MINUTE_MS
    report(bootstrap, two_minutes_ago_ms)
    watch(bootstrap, two_minutes_ago_ms)


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])
