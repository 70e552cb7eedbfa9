"""Fleet map: the trucks of the example as they drive, and the log read again from any time.

The page is its own (`assets/fleet`): it follows the Stream API from the browser, and needs this process only to be told
which topics there are.
"""

from __future__ import annotations

from html import escape

from nicegui import ui

from headrace import __version__
from headrace.console.data_fleet import ALERTS, REPORTS, FleetSource, load_fleet
from headrace.console.equivalents import Equivalent, command, curl
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.mounting import PREFIX
from headrace.console.page import Page, Visit, named
from headrace.console.states import text

_EVERY_S = 10.0


def _build(visit: Visit) -> None:
    root = visit.root
    ui.add_head_html(
        f'<link rel="stylesheet" href="{root}/assets/fleet/fleet.css?v={__version__}">'
        f'<script type="module" src="{root}/assets/fleet/fleet.js?v={__version__}"></script>'
    )
    text("h1", "Fleet map").classes("fleet-title")
    Live(lambda: load_fleet(visit.services), lambda source: _show(visit, source), every_s=_EVERY_S)
    with ui.element("div").classes("fleet-below"):
        EquivalentsPanel(_elsewhere(visit))


def _show(visit: Visit, source: FleetSource) -> None:
    root = visit.root
    attributes = {
        "bootstrap": visit.bootstrap,
        "base": root.removesuffix(PREFIX),
        "topics": ",".join(source.topics),
        "alerts": ALERTS if ALERTS in source.topics else "",
        "first": source.first_ms or "",
        "back": source.back_ms,
        "topic-url": root + named("/topics/{}", REPORTS),
    }
    data = " ".join(f'data-{name}="{escape(str(value))}"' for name, value in attributes.items())
    ui.html(f'<div class="fleet" {data}></div>', sanitize=False).classes("fleet-place")


def _elsewhere(visit: Visit) -> Equivalent:
    return Equivalent(
        cli=command(
            "kafka-console-consumer",
            options={"bootstrap-server": visit.bootstrap, "topic": REPORTS, "from-beginning": True},
        ),
        curl=curl(visit.base, f"/stream/{REPORTS},{ALERTS}", method="STREAM", query={"since": "-5m"}),
        python=(
            "from headrace import KafkaConsumer\n\n"
            f'consumer = KafkaConsumer("{REPORTS}", "{ALERTS}", bootstrap_servers="{visit.bootstrap}")\n'
            "for record in consumer:\n    print(record.timestamp, record.value)"
        ),
    )


PAGES = (Page(path="/fleet", title="Fleet map", icon="local_shipping", section="More", key="f", build=_build),)
