"""Streams that commit to a group, by what was sent and by what was acknowledged; and WebSockets."""

import json
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from gateway.streaming import Log, committed, events, get, hear, overflow, wait_for
from headrace.client.consumer import KafkaConsumer
from headrace.testing.gateway_thread import GatewayThread

pytestmark = pytest.mark.slow


@pytest.fixture
def log(writer):
    """A topic with one partition."""
    return Log(writer)


def open_socket(gateway, path):
    """A WebSocket to a stream."""
    return connect(f"{gateway.url.replace('http', 'ws')}/stream/{path}", open_timeout=20, proxy=None)


def test_group_goes_on(gateway, log):
    """Does a stream of a group begin where the last one ended, and commit what it sent?"""
    group = f"group-{log.topic}"
    log.send(*range(10))
    for expected in (range(4), range(4, 8)):
        with events(gateway.url, log.topic, group=group, since="earliest", max=4) as source:
            records = [event.data["value"] for event in source if event.name == "message"]
        assert list(expected) == records
    wait_for(lambda: committed(log, group), {0: 8})


def test_group_commits_while_it_runs(gateway, log):
    """Is what a client was sent committed while it listens, and again what it may not have seen if it goes?"""
    group = f"group-{log.topic}"
    with events(gateway.url, log.topic, group=group, since="earliest") as source:
        log.send(1, 2, 3)
        assert [1, 2, 3] == source.values(3)
        wait_for(lambda: committed(log, group), {0: 3})
        log.send(4)
        assert [4] == source.values(1)
    with events(gateway.url, log.topic, group=group) as source:
        log.send(5)
        first = source.values(1)

    assert first in ([4], [5])


def test_one_stream_per_group(gateway, broker, log):
    """Is a second stream of a group refused, and one of a group that consumers are in?"""
    group = f"group-{log.topic}"
    with events(gateway.url, log.topic, group=group):
        answer = get(gateway.url, log.topic, group=group)
        assert (409, 40905) == (answer.status_code, answer.json()["error_code"])
    with KafkaConsumer(log.topic, bootstrap_servers=broker.bootstrap, group_id=f"{group}-2") as consumer:
        deadline = time.monotonic() + 20
        while not consumer.assignment():
            consumer.poll(100)
            assert time.monotonic() < deadline
        answer = get(gateway.url, log.topic, group=f"{group}-2")
        assert (409, 40905) == (answer.status_code, answer.json()["error_code"])


def test_websocket(gateway, log):
    """Do records come as messages, chosen and resumed like any stream's?"""
    log.send({"n": 1}, {"n": 2}, {"n": 3}, key="k")
    with open_socket(gateway, f"{log.topic}?since=earliest&filter=value.n%3E1") as websocket:
        begin = json.loads(websocket.recv(timeout=20))
        first, second = hear(websocket, 2)
    with open_socket(gateway, f"{log.topic}?last_event_id={first['id']}&max=1") as websocket:
        again, end = hear(websocket, 2)
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(timeout=20)

    assert ({"n": 2}, f"{log.topic}:0=2", "k", 1) == tuple(first[name] for name in ("value", "id", "key", "offset"))
    assert {"id": f"{log.topic}:0=0"} == begin
    assert second == again
    assert {"end": "max", "id": f"{log.topic}:0=3"} == end
    assert 1000 == closed.value.rcvd.code


def test_acknowledgements(gateway, log):
    """Is exactly what was acknowledged committed, by id or by offset, and the rest sent again?"""
    group = f"group-{log.topic}"
    log.send(*range(5))
    path = f"{log.topic}?group={group}&since=earliest"
    with open_socket(gateway, path) as websocket:
        messages = hear(websocket, 5)
        websocket.send(json.dumps({"ack": messages[1]["id"]}))
        wait_for(lambda: committed(log, group), {0: 2})
        websocket.send(json.dumps({"ack": {log.topic: {"0": 3}}}))
    wait_for(lambda: committed(log, group), {0: 3})
    with open_socket(gateway, f"{path}&max=2") as websocket:
        *rest, end = hear(websocket, 3)
        websocket.send(json.dumps({"ack": end["id"]}))
        with pytest.raises(ConnectionClosed):
            websocket.recv(timeout=20)

    assert [3, 4] == [message["value"] for message in rest]
    wait_for(lambda: committed(log, group), {0: 5})


def test_last_acknowledgement(gateway, log):
    """Is a client that acknowledges as it goes, from the first position on, heard to the end?"""
    group = f"group-{log.topic}"
    log.send(1, 2)
    with open_socket(gateway, f"{log.topic}?group={group}&since=earliest&max=2") as websocket:
        websocket.send(json.dumps({"ack": json.loads(websocket.recv(timeout=20))["id"]}))
        wait_for(lambda: committed(log, group), {0: 0})
        *_, end = hear(websocket, 3)
        websocket.send(json.dumps({"ack": end["id"]}))
        with pytest.raises(ConnectionClosed):
            websocket.recv(timeout=20)

    wait_for(lambda: committed(log, group), {0: 2})


def test_pause(broker, log):
    """Does a client that pauses get nothing but signs of life until it resumes?"""
    settings = {"stream.heartbeat.ms": "100"}
    with GatewayThread(broker.bootstrap, settings) as gateway, open_socket(gateway, f"{log.topic}?key=k") as websocket:
        log.send(1, key="k")
        assert 1 == hear(websocket)[0]["value"]
        websocket.send('{"pause": true}')
        wait_for(lambda: [one.paused for one in gateway.gateway.services.streams._open], [True])
        log.send(2, key="k")
        tail = gateway.gateway.services.streams.hub.tail((log.topic, 0))
        wait_for(lambda: tail.end, 2)
        (stream,) = gateway.gateway.services.streams._open
        assert stream.cursor.has_news
        websocket.send('{"resume": true}')
        assert 2 == hear(websocket)[0]["value"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("nonsense", "A message is"),
        ('{"wish": 1}', "A message is"),
        ('{"ack": "t:0=1"}', "no group"),
        ("[" * 70_000, "65536 bytes"),
    ],
)
def test_bad_messages(gateway, log, message, words):
    """Is a message that makes no sense answered with a number and a sentence, and the connection closed?"""
    with open_socket(gateway, log.topic) as websocket:
        websocket.send(message)
        (told,) = hear(websocket)
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(timeout=20)

    assert 400 == told["error_code"]
    assert words in told["message"]
    assert 1008 == closed.value.rcvd.code


@pytest.mark.parametrize("ack", ['{"ack": "%s:0=9"}', '{"ack": {"%s": {"0": 9}}}', '{"ack": {"%s": {"x": 1}}}'])
def test_acknowledging_too_much(gateway, log, ack):
    """Is what was not sent not acknowledged?"""
    log.send(1)
    group = f"group-{log.topic}"
    with open_socket(gateway, f"{log.topic}?group={group}&since=earliest") as websocket:
        hear(websocket)
        websocket.send(ack % log.topic)
        (told,) = hear(websocket)

    assert 400 == told["error_code"]
    assert {} == committed(log, group)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("no-such-topic", 404, 40401),
        ("{t}?filter=x", 400, 400),
        ("{t}?group=g&envelope=value", 400, 400),
        ("{t}?last_event_id=x:", 400, 400),
    ],
)
def test_refused_handshakes(gateway, log, path, status, code):
    """Is a WebSocket that cannot be refused as an ordinary request is?"""
    with pytest.raises(InvalidStatus) as refused, open_socket(gateway, path.format(t=log.topic)):
        pass

    assert status == refused.value.response.status_code
    assert code == json.loads(refused.value.response.body)["error_code"]


def test_foreign_pages(gateway, log):
    """Is a page of another site kept from opening a WebSocket?"""
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{gateway.url.replace('http', 'ws')}/stream/{log.topic}", origin="https://evil.example", proxy=None)

    assert 403 == refused.value.response.status_code


def test_a_websocket_that_does_not_read(broker, log):
    """Is a client that takes no messages dropped with a reason, which it finds behind what it left lying?"""
    count = overflow(log)
    settings = {"stream.stall.ms": "700", "stream.buffer.bytes": "65536"}
    with (
        GatewayThread(broker.bootstrap, settings) as gateway,
        connect(
            f"{gateway.url.replace('http', 'ws')}/stream/{log.topic}?since=earliest",
            proxy=None,
            max_queue=2,
            compression=None,
        ) as websocket,
    ):
        wait_for(lambda: gateway.gateway.services.streams.dropped, 1)
        with pytest.raises(ConnectionClosed) as closed:
            hear(websocket, count)

    assert 1008 == closed.value.rcvd.code
    assert "stream.stall.ms" in closed.value.rcvd.reason
