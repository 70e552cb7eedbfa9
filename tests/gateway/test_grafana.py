"""The dashboard that comes with the project shows what is really exported."""

import importlib.util
import json
import re
import urllib.request
from pathlib import Path
from types import SimpleNamespace

from headrace import KafkaProducer
from headrace.client.records import TopicPartition
from headrace.gateway.metrics import lag_families
from headrace.model.exposition import render
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread
from prometheus_text import Metrics

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "generate_grafana_dashboard.py"
PAGE = ROOT / "docs" / "howto" / "metrics.md"
_WORD = re.compile(r"\b(?:kafka|headrace|process)_[a-z_]+\b")


def tool():
    """The program that made the dashboard."""
    spec = importlib.util.spec_from_file_location(TOOL.stem, TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported() -> set[str]:
    """The names of what a busy broker and a gateway before it tell, and of what is told of a group's lag."""
    with Cluster({"metrics.listener": "127.0.0.1:0"}) as cluster, GatewayThread(cluster.bootstrap) as gateway:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("t", value=b"v").get(timeout=30)
        # The second look at the gateway has the first one in it.
        urls = (f"http://127.0.0.1:{cluster.brokers[1].metrics.port}", gateway.url, gateway.url)
        texts = [urllib.request.urlopen(f"{url}/metrics", timeout=20).read().decode() for url in urls]
    lag = SimpleNamespace(records=1, seconds=1.0)
    history = SimpleNamespace(committed={"g": {TopicPartition("t", 0): 0}}, lag_of=lambda *_: lag)
    texts.append("".join(render(lag_families(history, 0.0))))
    return {name for text in texts for name in Metrics(text).names()}


def test_dashboard_is_what_its_program_writes():
    """Was the file made again after the last change of its program?"""
    made = tool()

    assert made.TARGET.read_text(encoding="utf-8") == made.render(), f"run {TOOL.name}"


def test_every_metric_it_shows_is_exported():
    """Does the dashboard, and the page about metrics, name nothing that nobody tells?"""
    names = exported()
    shown = {
        word
        for panel in tool().dashboard()["panels"]
        for target in panel.get("targets", ())
        for word in _WORD.findall(target["expr"])
    }
    told = {word for word in _WORD.findall(PAGE.read_text(encoding="utf-8")) if not word.endswith("_")}

    assert len(shown) > 30
    assert shown - names == set()
    assert {word for word in told if word not in names and f"{word}_bucket" not in names} == set()


def test_panels_do_not_overlap():
    """Has every panel an id and a place of its own, and a data source that can be chosen?"""
    dashboard = json.loads(tool().TARGET.read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {one["name"] for one in dashboard["templating"]["list"]} == {"datasource", "instance"}
    assert all(panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}" for panel in panels)
