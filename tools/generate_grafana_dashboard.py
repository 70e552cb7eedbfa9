"""Write docs/grafana/headrace.json, a Grafana dashboard of brokers and gateways; a test compares.

Run as: python tools/generate_grafana_dashboard.py
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).parent.parent / "docs" / "grafana" / "headrace.json"
WIDTH, HEIGHT = 8, 7
COLUMNS = 24 // WIDTH
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
TOPICS = "kafka_server_brokertopicmetrics"
REPLICAS = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
GATEWAY = "headrace_gateway"
TIMES = "kafka_network_requestmetrics_totaltimems_bucket"
RATE = "[$__rate_interval]"
_DURATIONS = f"{GATEWAY}_request_duration_seconds_bucket"


class Panel(NamedTuple):
    """A graph, or a single number: its title, unit, and queries with their legends."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    bad: float | None = None
    """From here on it is red."""


def _rate(name: str, by: str, which: str = "") -> str:
    return f'sum by ({by}) (rate({name}{{instance=~"$instance"{which}}}{RATE}))'


def _now(name: str) -> str:
    return f'{name}{{instance=~"$instance"}}'


def _sum(name: str) -> str:
    return f'sum({name}{{instance=~"$instance"}})'


def _late(request: str) -> tuple[str, str]:
    buckets = f'rate({TIMES}{{instance=~"$instance", request="{request}"}}{RATE})'
    return f"histogram_quantile(0.99, sum by (le) ({buckets}))", f"{request} p99"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Cluster": (
        Panel("Active controllers", "short", ((_sum(f"{CONTROLLER}_activecontrollercount"), ""),), "stat"),
        Panel("Brokers that serve", "short", ((f"max({CONTROLLER}_activebrokercount)", ""),), "stat"),
        Panel("Fenced brokers", "short", ((f"max({CONTROLLER}_fencedbrokercount)", ""),), "stat", 1),
        Panel("Partitions without a leader", "short", ((f"max({CONTROLLER}_offlinepartitionscount)", ""),), "stat", 1),
        Panel("Under-replicated", "short", ((_sum(f"{REPLICAS}_underreplicatedpartitions"), ""),), "stat", 1),
        Panel("Under min.insync.replicas", "short", ((_sum(f"{REPLICAS}_underminisrpartitioncount"), ""),), "stat", 1),
    ),
    "Traffic": (
        Panel("Records in", "wps", ((_rate(f"{TOPICS}_messagesin_total", "topic", ', topic!=""'), "{{topic}}"),)),
        Panel("Bytes in", "Bps", ((_rate(f"{TOPICS}_bytesin_total", "topic", ', topic!=""'), "{{topic}}"),)),
        Panel("Bytes out", "Bps", ((_rate(f"{TOPICS}_bytesout_total", "topic", ', topic!=""'), "{{topic}}"),)),
        Panel(
            "Replication",
            "Bps",
            (
                (_rate(f"{TOPICS}_replicationbytesin_total", "instance", ', topic=""'), "in {{instance}}"),
                (_rate(f"{TOPICS}_replicationbytesout_total", "instance", ', topic=""'), "out {{instance}}"),
            ),
        ),
        Panel(
            "Requests",
            "reqps",
            ((_rate("kafka_network_requestmetrics_requests_total", "request"), "{{request}}"),),
        ),
        Panel("Slowest hundredth", "ms", (_late("Produce"), _late("Fetch"), _late("Metadata"))),
        Panel(
            "Refused",
            "ops",
            (
                (_rate(f"{TOPICS}_failedproducerequests_total", "instance"), "produce {{instance}}"),
                (_rate(f"{TOPICS}_failedfetchrequests_total", "instance"), "fetch {{instance}}"),
            ),
        ),
        Panel(
            "Connections",
            "short",
            (
                (
                    _now("kafka_server_socketservermetrics_connection_count"),
                    "{{instance}} {{listener}}",
                ),
            ),
        ),
    ),
    "Replicas and logs": (
        Panel("Leaders", "short", ((_now(f"{REPLICAS}_leadercount"), "{{instance}}"),)),
        Panel(
            "Replica furthest behind",
            "short",
            ((_now("kafka_server_replicafetchermanager_maxlag"), "{{instance}}"),),
        ),
        Panel(
            "In-sync replicas",
            "ops",
            (
                (_rate(f"{REPLICAS}_isrshrinks_total", "instance"), "shrinks {{instance}}"),
                (_rate(f"{REPLICAS}_isrexpands_total", "instance"), "expands {{instance}}"),
            ),
        ),
        Panel("Size on disk", "bytes", (('sum by (topic) (kafka_log_log_size{instance=~"$instance"})', "{{topic}}"),)),
        Panel("Groups", "short", ((_sum("kafka_coordinator_group_groupmetadatamanager_numgroups"), "groups"),)),
        Panel(
            "Failed log directories",
            "short",
            ((_sum("kafka_log_logmanager_offlinelogdirectorycount"), ""),),
            "stat",
            1,
        ),
    ),
    "Gateway": (
        Panel("Requests", "reqps", ((_rate(f"{GATEWAY}_requests_total", "route, status"), "{{route}} {{status}}"),)),
        Panel(
            "Slowest hundredth",
            "s",
            ((f"histogram_quantile(0.99, {_rate(_DURATIONS, 'le, route')})", "{{route}}"),),
        ),
        Panel("Streams", "short", ((_now(f"{GATEWAY}_streams"), "{{kind}} {{instance}}"),)),
        Panel(
            "Records",
            "wps",
            (
                (_rate(f"{GATEWAY}_produced_records_total", "result"), "{{result}}"),
                (_rate(f"{GATEWAY}_delivered_records_total", "instance"), "delivered"),
            ),
        ),
        Panel(
            "Bytes",
            "Bps",
            (
                (_rate(f"{GATEWAY}_received_bytes_total", "instance"), "in {{instance}}"),
                (_rate(f"{GATEWAY}_sent_bytes_total", "instance"), "out {{instance}}"),
            ),
        ),
        Panel(
            "Clients dropped, consumer instances",
            "short",
            (
                (f'increase({GATEWAY}_streams_dropped_total{{instance=~"$instance"}}{RATE})', "dropped {{instance}}"),
                (_now(f"{GATEWAY}_consumer_instances"), "instances {{instance}}"),
            ),
        ),
        Panel("Lag of groups", "short", (("kafka_consumergroup_lag_sum", "{{consumergroup}} {{topic}}"),)),
        Panel("Lag of groups in time", "s", (("kafka_consumergroup_lag_seconds", "{{consumergroup}} {{topic}}"),)),
    ),
    "Processes": (
        Panel("CPU", "percentunit", ((_rate("process_cpu_seconds_total", "instance"), "{{instance}}"),)),
        Panel("Memory", "bytes", ((_now("process_resident_memory_bytes"), "{{instance}}"),)),
        Panel("Open files", "short", ((_now("process_open_fds"), "{{instance}}"),)),
    ),
}


def dashboard() -> dict[str, Any]:
    """All of it, as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
                "panels": [],
            }
        )
        width = 4 if all(panel.kind == "stat" for panel in row) else WIDTH
        height = 4 if width == 4 else HEIGHT
        for place, panel in enumerate(row):
            x, line = place % (24 // width) * width, place // (24 // width)
            grid = {"h": height, "w": width, "x": x, "y": y + 1 + line * height}
            panels.append(_panel(panel, len(panels) + 1, grid))
        y += 1 + (len(row) + 24 // width - 1) // (24 // width) * height
    return {
        "uid": "headrace",
        "title": "Headrace",
        "description": "Brokers and gateways of Headrace.",
        "tags": ["headrace", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_source_variable(), _instance_variable()]},
        "panels": panels,
    }


def _panel(panel: Panel, number: int, grid: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.bad is not None:
        steps.append({"color": "red", "value": panel.bad})
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    options["tooltip"] = {"mode": "multi", "sort": "desc"}
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": grid,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.queries)
        ],
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def _instance_variable() -> dict[str, Any]:
    query = "label_values(process_start_time_seconds, instance)"
    return {
        "name": "instance",
        "label": "Instance",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "instances"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {},
    }


def render() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(render(), encoding="utf-8")
    print(f"wrote {TARGET.name}")
