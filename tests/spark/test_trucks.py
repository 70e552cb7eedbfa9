"""The fleet's pipeline over some hours of driving, record by record."""

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime

import pytest

from headrace import KafkaProducer
from headrace.testing.cluster import Cluster
from spark.trucks_oracle import TRUCKS, Expected, need_spark, read, sent_number

from account import Account  # isort: skip - found through the oracle
from fleet import Fleet  # isort: skip
from topics import ALERTS, DEAD_LETTERS, GPS, POSITIONS, STATS, make_topics  # isort: skip

START_MS = 1_790_000_100_000
HOURS_MS = 3 * 3_600_000
DELAY_MS = 120_000


@pytest.fixture(scope="module")
def cluster():
    """A broker, where everything is there that the pipeline needs beside it."""
    need_spark()
    with Cluster({"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}) as found:
        yield found


def send(bootstrap, outgoing):
    with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for one in outgoing:
            producer.send(GPS, one.value, key=one.truck_id.encode(), headers=one.headers)


def stage(place):
    """A copy of the fleet's programs, as the demo makes one."""
    for path in (*TRUCKS.glob("*.py"), TRUCKS / "fleet.toml"):
        shutil.copy(path, place)
    return place / "fleet.toml"


def run_pipeline(file, bootstrap):
    """Run the pipeline over what is there."""
    command = [sys.executable, "-m", "headrace.cli", "pipeline", "run", file, "--available-now"]
    done = subprocess.run(
        [*command, "--bootstrap-server", bootstrap, "--master", "local[2]"],
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
        env={**os.environ, "XDG_STATE_HOME": str(file.parent / "state"), "SPARK_DRIVER_MEMORY": "1g"},
    )
    assert 0 == done.returncode, done.stderr[-5000:]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_fleet_end_to_end(cluster, tmp_path):
    """Does every report become one position or one dead letter, and what the rules say an alert? R32 R34"""
    make_topics(cluster.bootstrap)
    fleet = Fleet(40, seed=5, start_ms=START_MS)
    file = stage(tmp_path)
    for end_ms in (HOURS_MS // 2, HOURS_MS):
        send(cluster.bootstrap, fleet.until(START_MS + end_ms))
        run_pipeline(file, cluster.bootstrap)

    expected = Expected(read(cluster.bootstrap, GPS))
    positions = [json.loads(record.value) for record in read(cluster.bootstrap, POSITIONS)]
    letters = read(cluster.bootstrap, DEAD_LETTERS)
    alerts = [json.loads(record.value) for record in read(cluster.bootstrap, ALERTS)]
    ids = [alert["alert_id"] for alert in alerts]

    assert expected.positions() == sorted((one["truck_id"], one["seq"]) for one in positions)
    assert expected.bad == {(record.key.decode(), sent_number(record)) for record in letters}
    assert all("__error.reason" in dict(record.headers) for record in letters)
    assert len(ids) == len(set(ids))
    assert expected.alerts <= set(ids) <= expected.alerts | expected.late_alerts
    assert {"speeding", "idle", "silent", "geofence_enter", "geofence_leave"} == {alert["kind"] for alert in alerts}
    assert_lake_holds(tmp_path / "lake/stats", closed_windows(cluster.bootstrap, expected))
    assert account(fleet, positions, letters, alerts).is_whole


def closed_windows(bootstrap, expected):
    """What the topic tells of windows, after a look whether those of trucks are the ones that closed."""
    stats = [json.loads(record.value) for record in read(bootstrap, STATS)]
    newest_ms = max(report.ts_ms for reports in expected.good.values() for report in reports.values())
    told = {(one["name"], start_ms(one)): one["reports"] for one in stats if one["level"] == "truck"}
    regions = {one["name"] for one in stats if one["level"] == "region"}

    assert expected.windows(before_ms=newest_ms - DELAY_MS) == told
    assert {"Germany", "France"} <= regions
    return stats


def start_ms(window):
    return round(datetime.fromisoformat(window["window_start"]).timestamp() * 1000)


def assert_lake_holds(path, stats):
    """The lake has each window once that the topic told of before the lake was last filled."""
    from pyarrow.dataset import dataset

    lake = dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    names = [(one["level"], one["name"], round(one["window_start"].timestamp() * 1000)) for one in lake]

    assert len(names) == len(set(names))
    assert names
    assert set(names) <= {(one["level"], one["name"], start_ms(one)) for one in stats}


def account(fleet, positions, letters, alerts):
    """The account of the run, as the demo keeps it."""
    found = Account()
    for one in positions:
        found.add_position(one["truck_id"], one["seq"], latency_ms=0)
    for record in letters:
        found.add_dead_letter(record.key.decode(), sent_number(record))
    for alert in alerts:
        found.add_alert(alert["alert_id"], alert["kind"])
    return found.verdict(fleet.ledger())
