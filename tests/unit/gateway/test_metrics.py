"""What the gateway tells Prometheus, without a cluster behind it."""

import asyncio
import contextlib
from types import SimpleNamespace

from headrace.client.records import TopicPartition
from headrace.gateway.connection import PUT, put_of
from headrace.gateway.metering import Metering
from headrace.gateway.meters import SERIES_MAX, Meters
from headrace.gateway.metrics import families, lag_families
from headrace.model.exposition import render
from prometheus_text import Metrics


def rendered(meters: Meters) -> Metrics:
    """As a scraper sees it."""
    return Metrics(
        "".join(
            render(
                families(SimpleNamespace(meters=meters, streams=SimpleNamespace(dropped=0, delivered=0), instances=()))
            )
        )
    )


def answering(*messages, mistake: Exception | None = None):
    """An application that sends these messages, and perhaps makes a mistake then."""

    async def app(scope, receive, send):
        await receive()
        scope["route"] = SimpleNamespace(path="/topics/{topic}")
        for message in messages:
            await send(message)
        if mistake is not None:
            raise mistake

    return app


def pass_through(app, scope, incoming=None) -> Meters:
    """Send a request through; what was counted."""
    meters = Meters()

    async def receive():
        return incoming or {"type": "http.request", "body": b"12345"}

    async def send(message):
        """Nobody listens."""

    async def run():
        await Metering(app, meters)(scope, receive, send)

    with contextlib.suppress(ZeroDivisionError):
        asyncio.run(run())
    return meters


def start(status, kind=b"application/json"):
    """The beginning of an answer."""
    return {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]}


BODY = {"type": "http.response.body", "body": b"abc"}
HTTP = {"type": "http", "method": "GET", "path": "/topics/x"}


def test_requests_by_route_and_status():
    """Is a request counted under its route and not its path, with its time and bytes?"""
    read = rendered(pass_through(answering(start(404), BODY), dict(HTTP)))

    labels = {"method": "GET", "route": "/topics/{topic}"}
    assert read.get("headrace_gateway_requests_total", status="404", **labels) == 1
    assert read.get("headrace_gateway_request_duration_seconds_count", route="/topics/{topic}") == 1
    assert (read.get("headrace_gateway_received_bytes_total"), read.get("headrace_gateway_sent_bytes_total")) == (5, 3)
    assert read.get("headrace_gateway_requests_in_flight") == 0


def test_mistakes_and_clients_that_go():
    """Does a mistake count as 500, a client that left as 499, and a made-up method under one name?"""
    mistake = pass_through(answering(mistake=ZeroDivisionError()), dict(HTTP))
    gone = pass_through(answering(), {**HTTP, "method": "BREW"})

    assert list(mistake.requests) == [("GET", "/topics/{topic}", 500)]
    assert list(gone.requests) == [("OTHER", "/topics/{topic}", 499)]


def test_streams_are_not_timed():
    """Are streams counted by kind with their bytes, and kept out of the durations?"""
    sse = pass_through(answering(start(200, b"text/event-stream; charset=utf-8"), BODY, BODY), dict(HTTP))
    accept, said = {"type": "websocket.accept"}, {"type": "websocket.send", "text": "hello"}
    socket = pass_through(answering(accept, said), {"type": "websocket", "path": "/"}, {"type": "websocket.connect"})

    assert (sse.streams_opened["sse"], sse.streams["sse"], sse.stream_bytes["sse"], sse.times) == (1, 0, 6, {})
    assert (socket.streams_opened["websocket"], socket.stream_bytes["websocket"]) == (1, 5)
    assert rendered(sse).get("headrace_gateway_streams_opened_total", kind="sse") == 1


def test_the_short_way_is_counted():
    """Do bytes that pass everybody by count like those that were sent, and not if there was no room for them?"""

    async def app(scope, receive, send):
        await send(start(200, b"text/event-stream"))
        put = put_of(scope)
        assert [True, False] == [put(b"12345"), put(b"1234567890")]

    meters = pass_through(app, {**HTTP, "extensions": {PUT: lambda data: len(data) < 10}})
    assert (5, 5) == (meters.bytes_sent, meters.stream_bytes["sse"])


def test_what_is_mounted_counts_as_one():
    """Do the console's many paths make one series?"""
    scope = {**HTTP, "root_path": "/console/static"}

    assert list(pass_through(answering(start(200), BODY), scope).requests) == [("GET", "/console", 200)]


def test_series_are_bounded():
    """Is there an end to the series, whatever is asked for?"""
    meters = Meters()
    for number in range(SERIES_MAX + 10):
        meters.answered("GET", f"/{number}", 200, None)

    assert len(meters.requests) == SERIES_MAX


def test_lag_of_groups():
    """Is a group's lag told by topic, in records, and in seconds where that is known?"""
    history = SimpleNamespace(
        committed={"g": {TopicPartition("t", 0): 5, TopicPartition("u", 0): 1}},
        lag_of=lambda group, topic, now: SimpleNamespace(records=3, seconds=1.5 if topic == "t" else None),
    )
    meters = Meters()
    meters.sources.append(lambda: lag_families(history, 0.0))

    read = rendered(meters)
    assert read.get("kafka_consumergroup_lag_sum", consumergroup="g", topic="u") == 3
    assert read.get("kafka_consumergroup_lag_seconds", consumergroup="g", topic="t") == 1.5
    assert read.get("kafka_consumergroup_lag_seconds", consumergroup="g", topic="u") is None
