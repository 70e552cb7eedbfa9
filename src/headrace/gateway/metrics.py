"""`/metrics`: what the gateway counts, and how far groups are behind, as Prometheus reads it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from starlette.responses import Response

from headrace.gateway.route import Call, Route
from headrace.model.exposition import CONTENT_TYPE, Family, counter, gauge, labelled, render
from headrace.net.process_stats import process_families

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headrace.gateway.meters import Meters
    from headrace.gateway.services import Services

_SECOND_NS = 1_000_000_000
_PREFIX = "headrace_gateway"
STREAM_KINDS = ("ndjson", "sse", "websocket")


def families(services: Services) -> Iterator[Family]:
    """Everything that is measured."""
    meters = services.meters
    yield from _requests(meters)
    yield from _streams(meters, services)
    yield from _records(meters, services)
    for source in meters.sources:
        yield from source()
    yield from process_families()


def _requests(meters: Meters) -> Iterator[Family]:
    yield labelled(
        f"{_PREFIX}_requests_total",
        "counter",
        "Requests answered; 499 are those whose client went first.",
        [
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in sorted(meters.requests.items())
        ],
    )
    yield Family(
        f"{_PREFIX}_request_duration_seconds",
        "histogram",
        "Seconds from a request to the end of its answer, streams aside.",
        chain.from_iterable(
            times.samples({"route": route}, unit_ns=_SECOND_NS) for route, times in sorted(meters.times.items())
        ),
    )
    yield gauge(f"{_PREFIX}_requests_in_flight", "Requests and streams under way.", meters.in_flight)
    yield counter(f"{_PREFIX}_received_bytes_total", "Bytes of requests' bodies.", meters.bytes_received)
    yield counter(f"{_PREFIX}_sent_bytes_total", "Bytes of answers' bodies, streams included.", meters.bytes_sent)


def _streams(meters: Meters, services: Services) -> Iterator[Family]:
    for name, sentence, counts in (
        ("streams", "Streams that are open.", meters.streams),
        ("streams_opened_total", "Streams that were opened.", meters.streams_opened),
        ("stream_bytes_total", "Bytes sent to streams.", meters.stream_bytes),
    ):
        rows = [({"kind": kind}, counts[kind]) for kind in STREAM_KINDS]
        yield labelled(f"{_PREFIX}_{name}", "counter" if name.endswith("_total") else "gauge", sentence, rows)
    dropped = services.streams.dropped
    yield counter(f"{_PREFIX}_streams_dropped_total", "Clients that did not read and were dropped.", dropped)


def _records(meters: Meters, services: Services) -> Iterator[Family]:
    yield labelled(
        f"{_PREFIX}_produced_records_total",
        "counter",
        "Records that came over HTTP for the cluster, by what became of them.",
        [({"result": "stored"}, meters.records_stored), ({"result": "refused"}, meters.records_refused)],
    )
    delivered = meters.records_delivered + services.streams.delivered
    yield counter(f"{_PREFIX}_delivered_records_total", "Records given to streams and consumers.", delivered)
    there = len(services.instances)
    yield gauge(f"{_PREFIX}_consumer_instances", "Consumer instances (REST v2) that are there.", there)


class Lag(Protocol):
    """How far a group is behind in a topic."""

    @property
    def records(self) -> int:
        """In records."""

    @property
    def seconds(self) -> float | None:
        """In seconds, where that is known."""


class LagHistory(Protocol):
    """Who has looked at groups lately."""

    @property
    def committed(self) -> Mapping[str, Mapping[Any, int]]:
        """What each group had committed, by partition."""

    def lag_of(self, group_id: str, topic: str, now: float) -> Lag | None:
        """How far a group was behind in one topic."""


def lag_families(history: LagHistory, now: float) -> Iterator[Family]:
    """How far groups are behind, for `Meters.sources`."""
    lags = [
        ({"consumergroup": group, "topic": topic}, lag)
        for group, offsets in sorted(history.committed.items())
        for topic in sorted({place.topic for place in offsets})
        if (lag := history.lag_of(group, topic, now)) is not None
    ]
    yield labelled(
        "kafka_consumergroup_lag_sum",
        "gauge",
        "Records of a topic that a group has not committed yet.",
        [(labels, lag.records) for labels, lag in lags],
    )
    yield labelled(
        "kafka_consumergroup_lag_seconds",
        "gauge",
        "Age of the oldest record of a topic that a group has not committed yet.",
        [(labels, lag.seconds) for labels, lag in lags if lag.seconds is not None],
    )


async def _metrics(call: Call) -> Response:
    return Response("".join(render(families(call.services))), media_type=CONTENT_TYPE)


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        handle=_metrics,
        tag="gateway",
        summary="What the gateway counts, for Prometheus",
        answer=str,
        gives=("text/plain",),
    ),
)
