"""Streams over TLS."""

import json
import ssl

import httpx
import pytest
from websockets.sync.client import connect

from certificates import Authority
from gateway.streaming import EventSource, Log, committed, hear, wait_for
from headrace.testing.gateway_thread import GatewayThread


@pytest.fixture
def authority(tmp_path):
    """Whom the clients believe."""
    return Authority(tmp_path / "authority")


@pytest.fixture
def secure(broker, authority):
    """A gateway that speaks TLS only."""
    identity = authority.sign("gateway")
    settings = {
        "listeners": "https://127.0.0.1:0",
        "ssl.certfile": str(identity.certificate),
        "ssl.keyfile": str(identity.key),
    }
    with GatewayThread(broker.bootstrap, settings) as gateway:
        yield gateway


def test_events(secure, authority, writer):
    """Do records come over HTTPS as they are written, one by one? (R30)"""
    log = Log(writer)
    log.send({"n": 1})
    trust = ssl.create_default_context(cafile=str(authority.file))
    path = f"{secure.url}/stream/{log.topic}?since=earliest"
    with httpx.stream("GET", path, verify=trust, trust_env=False, timeout=20) as response:
        source = EventSource(response)
        first = source.take(1)
        log.send({"n": 2})
        second = source.take(1)

    assert [{"n": 1}, {"n": 2}] == [event.data["value"] for event in (*first, *second)]


def test_websocket(secure, authority, writer):
    """Does a WebSocket work over TLS in both directions: records to the client, acknowledgements from it?"""
    log = Log(writer)
    log.send({"n": 1}, {"n": 2})
    group = f"group-{log.topic}"
    trust = ssl.create_default_context(cafile=str(authority.file))
    path = f"{secure.url.replace('https', 'wss')}/stream/{log.topic}?since=earliest&group={group}"
    with connect(path, ssl=trust, open_timeout=20, proxy=None) as websocket:
        first, second = hear(websocket, 2)
        websocket.send(json.dumps({"ack": first["id"]}))
        wait_for(lambda: committed(log, group), {0: 1})

    assert [{"n": 1}, {"n": 2}] == [first["value"], second["value"]]
