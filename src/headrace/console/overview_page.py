"""Overview: is the cluster well, what flows through it, and what to do next."""

from __future__ import annotations

import time
from collections.abc import Callable

from nicegui import ui

from headrace.client.health import Health
from headrace.console.chart import line_chart
from headrace.console.data_cluster import ClusterView, load_cluster
from headrace.console.equivalents import Equivalent
from headrace.console.equivalents_panel import EquivalentsPanel, code_block
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.part import Part
from headrace.console.states import card, chip, empty, figure, heading
from headrace.console.topic_creation import ask_for_topic
from headrace.console.words import count, rate, several, span

_EVERY_S = 2.0
_NAMED_MAX = 6
_BUSIEST = 5


def _build(visit: Visit) -> None:
    with heading("Overview"):
        pass
    Live(lambda: load_cluster(visit.services), lambda view: _show(visit, view), every_s=_EVERY_S)
    where = visit.where
    EquivalentsPanel(
        Equivalent(
            cli=where.tool("headrace health"),
            curl=where.curl("/v3/clusters"),
            python=where.admin("print(admin.describe_cluster())"),
        )
    )


def _show(visit: Visit, view: ClusterView) -> Callable[[ClusterView], None]:
    with ui.element("div").classes("hr-figures"):
        verdict = figure("Health", "")
        changes = [figure(words, "") for words in ("Brokers", "Topics", "Groups", "Written now")]
    steps: Part[bool] = Part(lambda is_empty: _first_steps(visit) if is_empty else None, classes="hr-live")
    complaints = Part(_complain, classes="hr-live")
    with card("Throughput", f"records written per second, over {span(visit.history.span_s)}"):
        chart = ui.html("", sanitize=False).classes("hr-full")
    with ui.element("div").classes("hr-columns"):
        with card("Brokers", f"cluster {view.cluster.cluster_id}"):
            brokers = Part(_list_brokers)
        with card("Busiest topics", "records written per second"):
            busiest = Part(_list_topics)

    def update(fresh: ClusterView) -> None:
        health = fresh.health
        verdict("Healthy" if health.is_well else "Not well", _in_short(health), "good" if health.is_well else "bad")
        changes[0](count(len(fresh.cluster.brokers)), _controller(fresh))
        changes[1](count(fresh.topics), several(fresh.partitions, "partition"))
        changes[2](count(fresh.groups), "of consumers")
        changes[3](rate(visit.history.rate()), "records per second")
        steps.put(not fresh.topics)
        complaints.put(health)
        chart.content = _chart(visit)
        brokers.put(fresh)
        busiest.put(_busiest(visit))

    update(view)
    return update


def _controller(view: ClusterView) -> str:
    return "" if view.cluster.controller_id < 0 else f"controller is {view.cluster.controller_id}"


def _complain(health: Health) -> None:
    for title, places in (
        ("Brokers that do not answer", health.silent_brokers),
        ("Partitions without a leader", health.leaderless),
        ("Partitions that lack replicas in sync", health.under_replicated),
        ("Log directories that are offline", health.offline_log_dirs),
    ):
        if places:
            more = f" and {len(places) - _NAMED_MAX} more" if len(places) > _NAMED_MAX else ""
            with ui.element("div").classes("hr-complaint").props('role="alert"'):
                ui.icon("warning_amber")
                ui.label(f"{title}: {', '.join(map(str, places[:_NAMED_MAX]))}{more}")


def _list_brokers(view: ClusterView) -> None:
    silent = set(view.health.silent_brokers)
    for broker in view.cluster.brokers:
        with ui.element("div").classes("hr-list-row"):
            ui.label(str(broker.node_id)).classes("hr-badge")
            ui.label(f"{broker.host}:{broker.port}").classes("hr-mono hr-grow")
            if broker.rack:
                chip(broker.rack)
            is_silent = broker.node_id in silent
            chip("does not answer" if is_silent else "up", "bad" if is_silent else "good")


def _busiest(visit: Visit) -> list[tuple[float, str]]:
    rates = ((visit.history.rate(name) or 0.0, name) for name in visit.history.topics)
    return sorted((one for one in rates if one[0] > 0), reverse=True)[:_BUSIEST]


def _list_topics(busiest: list[tuple[float, str]]) -> None:
    if not busiest:
        ui.label("Nothing is being written at the moment.").classes("hr-note")
    for speed, name in busiest:
        with ui.element("div").classes("hr-list-row"):
            ui.link(name, named("/topics/{}", name)).classes("hr-link hr-grow hr-ellipsis")
            with ui.element("div").classes("hr-meter"):
                ui.element("div").style(f"width: {max(speed / busiest[0][0] * 100, 2):.0f}%")
            ui.label(rate(speed)).classes("hr-number hr-rate")


def _chart(visit: Visit) -> str:
    history = visit.history
    title = f"Records written per second over {span(history.span_s)}, now {rate(history.rate())}"
    return line_chart(history.throughput(), words=rate, title=title, span_s=history.span_s, now=time.time())


def _in_short(health: Health) -> str:
    if health.is_well:
        return "all led, all in sync"
    troubles = len(health.silent_brokers) + len(health.leaderless) + len(health.under_replicated)
    return several(troubles + len(health.offline_log_dirs), "complaint")


def _first_steps(visit: Visit) -> None:
    with empty(
        "waves", "Nothing flows here yet", "Make a topic and send the first record; it appears on this page at once."
    ):
        ui.button("Create a topic", icon="add", on_click=lambda: ask_for_topic(visit)).props("unelevated no-caps")
        with ui.element("div").classes("hr-steps"):
            code_block(
                f"headrace topics create events --bootstrap-server {visit.bootstrap}", "Make a topic", "terminal"
            )
            code_block(
                f'headrace produce events "first event" --bootstrap-server {visit.bootstrap}', "Send to it", "terminal"
            )


PAGES = (Page(path="/", title="Overview", icon="dashboard", key="o", build=_build),)
