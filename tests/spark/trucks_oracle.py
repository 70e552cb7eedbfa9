"""What a fleet's records must become, worked out without Spark: positions, dead letters, alerts and statistics."""

import json
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path

TRUCKS = Path(__file__).parents[2] / "examples/trucks"
if str(TRUCKS) not in sys.path:
    sys.path.append(str(TRUCKS))

import pytest  # noqa: E402
from alert_rules import Limits, Report, elapse, follow  # noqa: E402 - found only now

from headrace import KafkaAdmin  # noqa: E402
from spark.committed import read_committed  # noqa: E402

_FOR_EVER_MS = 1 << 60


def need_spark():
    """Skip where there is no Spark, or no Java for it, or not what stateful processing needs."""
    pytest.importorskip("pyspark")
    pytest.importorskip("google.protobuf")
    from headrace.spark.java import NoJava, find_java

    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))


def read(bootstrap, topic):
    """Every committed record of a topic."""
    with KafkaAdmin(bootstrap_servers=bootstrap) as admin:
        (described,) = admin.describe_topics([topic])
    return read_committed(bootstrap, topic, len(described.partitions))


def sent_number(record):
    """The number of a report, which a garbled one carries beside its value."""
    beside = dict(record.headers).get("seq")
    return json.loads(record.value)["seq"] if beside is None else int(beside)


def report_of(record):
    """A record as a report, or None where the pipeline must refuse it."""
    try:
        found = json.loads(record.value or b"")
        ts_ms = round(datetime.fromisoformat(found["ts"]).timestamp() * 1000)
        report = Report(found["seq"], ts_ms, found["lat"], found["lon"], float(found["speed_kmh"]))
        assert found["truck_id"] == record.key.decode()
    except (ValueError, KeyError, TypeError):
        return None
    return report if -90 <= report.lat <= 90 and found["ts"] > "2020" else None


class Expected:
    """The outcome of a fleet's records."""

    def __init__(self, records):
        self.good = defaultdict(dict)
        self.bad = set()
        for record in records:
            report = report_of(record)
            if report is None:
                self.bad.add((record.key.decode(), sent_number(record)))
            else:
                self.good[record.key.decode()][report.seq] = report
        self.alerts = set()
        """What the reports themselves say."""
        self.late_alerts = set()
        """What time says after the last report, if the watermark comes so far."""
        for truck, reports in self.good.items():
            state = None
            for _, report in sorted(reports.items()):
                state, alerts = follow(truck, state, report, Limits())
                self.alerts |= {alert.alert_id for alert in alerts}
            self.late_alerts |= {alert.alert_id for alert in elapse(truck, state, _FOR_EVER_MS, Limits())[1]}

    def positions(self):
        """Every good report as truck and number."""
        return sorted((truck, seq) for truck, reports in self.good.items() for seq in reports)

    def windows(self, *, before_ms, minutes=5):
        """How many reports each truck made in each window that had closed by a time."""
        span_ms = minutes * 60_000
        counts = defaultdict(int)
        for truck, reports in self.good.items():
            for report in reports.values():
                start_ms = report.ts_ms // span_ms * span_ms
                if start_ms + span_ms <= before_ms:
                    counts[truck, start_ms] += 1
        return dict(counts)
