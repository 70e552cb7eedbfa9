"""What a client may do to the gateway's sockets, and how that ends."""

import json
import socket
import ssl
from urllib.parse import urlsplit

import httpx
import pytest
import websockets.sync.client
from starlette.routing import WebSocketRoute

from certificates import Authority
from headrace.testing.gateway_thread import GatewayThread

HEALTHY = b"GET /healthy HTTP/1.1\r\nhost: localhost\r\n\r\n"
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def strict(broker):
    """A gateway that is impatient and small."""
    settings = {"request.timeout.ms": "400", "request.max.header.bytes": "2048", "request.max.bytes": "4096"}
    with GatewayThread(broker.bootstrap, settings) as running:
        yield running


def connect(gateway):
    """A plain socket to the gateway."""
    parts = urlsplit(gateway.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)


def told(opened):
    """The status and the body of what comes before the gateway hangs up."""
    text = b""
    while piece := opened.recv(65536):
        text += piece
    head, _, body = text.rpartition(b"\r\n\r\n")
    return int(head.rpartition(b"HTTP/1.1 ")[2].split()[0]), json.loads(body)


def test_large_head(strict):
    """Is a head that is too large answered with 431, and the connection closed?"""
    with connect(strict) as opened:
        opened.sendall(b"GET /healthy HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 5000 + b"\r\n")
        status, body = told(opened)

    assert (status, body["error_code"]) == (431, 431)
    assert "request.max.header.bytes" in body["message"]


def test_no_http(strict):
    """Is something that is no HTTP answered with 400, and the connection closed?"""
    with connect(strict) as opened:
        opened.sendall(b"\x16\x03\x01 hello\r\n\r\n")

        assert told(opened)[0] == 400


@pytest.mark.parametrize("beginning", [b"", b"GET /heal"])
def test_slow_head(strict, beginning):
    """Is a connection closed on which no whole head arrives in time?"""
    with connect(strict) as opened:
        opened.sendall(beginning)
        status, body = told(opened)

    assert (status, body["error_code"]) == (408, 408)


def test_slow_second_head(strict):
    """Is the time of a head counted for later requests on the same connection, too?"""
    with connect(strict) as opened:
        opened.sendall(b"GET /healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")
        first = opened.recv(65536)
        opened.sendall(b"GET /heal")

        assert first.startswith(b"HTTP/1.1 200")
        assert told(opened)[0] == 408


def test_a_websocket_is_no_slow_head(broker):
    """Does a WebSocket outlive the time that a request's head may take?"""

    async def echo(websocket):
        await websocket.accept()
        async for text in websocket.iter_text():
            await websocket.send_text(text)

    def mount(app, _):
        app.router.routes.append(WebSocketRoute("/echo", echo))

    with (
        GatewayThread(broker.bootstrap, {"request.timeout.ms": "200"}, mount=mount) as gateway,
        websockets.sync.client.connect(f"{gateway.url.replace('http', 'ws')}/echo") as opened,
    ):
        with connect(gateway) as later:
            assert told(later)[0] == 408
        opened.send("hello")

        assert opened.recv(TIMEOUT_S) == "hello"


def test_slow_body(strict, here, topic):
    """Is a body that does not arrive in time answered with 408, and nothing stored?"""
    with connect(strict) as opened:
        head = f"POST {here}/topics/{topic}/records HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        opened.sendall(f'{head}content-type: application/json\r\ncontent-length: 40\r\n\r\n{{"partition_id":0'.encode())
        status, body = told(opened)

    assert (status, body["error_code"]) == (408, 408)
    assert "request.timeout.ms" in body["message"]


@pytest.mark.parametrize("is_declared", [True, False])
def test_large_body(strict, here, topic, is_declared):
    """Is a body over the limit refused, whether it says so before or not?"""
    body = json.dumps({"entries": [{"id": "1", "value": {"type": "STRING", "data": "x" * 10_000}}]}).encode()
    content = body if is_declared else iter([body])
    answer = httpx.post(
        f"{strict.url}{here}/topics/{topic}/records:batch",
        content=content,
        headers={"content-type": "application/json"},
        timeout=TIMEOUT_S,
    )

    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


def is_well(opened) -> bool:
    """Whether /healthy answers on a connection that stays open; takes the whole answer."""
    opened.sendall(HEALTHY)
    answer = b""
    while not answer.endswith(b"}"):
        answer += opened.recv(65536)
    return answer.startswith(b"HTTP/1.1 200")


def test_too_many_connections(broker):
    """Is a connection too many told so and closed, while the others live, and is there room again when one goes?"""
    with GatewayThread(broker.bootstrap, {"connections.max": "2"}) as small, connect(small) as first:
        with connect(small) as second:
            assert is_well(first)
            assert is_well(second)
            with connect(small) as third:
                status, body = told(third)
                assert (status, "connections.max" in body["message"]) == (503, True)
            assert is_well(first)
            second.sendall(HEALTHY.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            assert told(second)[0] == 200
        with connect(small) as fourth:
            fourth.sendall(HEALTHY)
            assert fourth.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/healthy%00", "/topics/%00", "/..%2f..%2fetc/passwd"])
def test_odd_paths(http, path):
    """Is a path with odd signs in it refused, and nothing more?"""
    assert http.get(path).status_code in {400, 404}


def test_answers_are_not_held_back(broker):
    """Are answers sent at once, and not after the 40 ms for which a kernel waits for more?"""
    with GatewayThread(broker.bootstrap) as gateway, connect(gateway) as opened:
        opened.sendall(b"GET /healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")
        opened.recv(65536)
        (server, _), *_ = gateway.gateway._server._servers
        (connection,) = server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")

        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# --- https


@pytest.fixture(scope="module")
def secure(broker, tmp_path_factory):
    """A gateway with both kinds of listener, and who signed its certificate."""
    authority = Authority(tmp_path_factory.mktemp("https") / "authority")
    identity = authority.sign("gateway")
    settings = {
        "listeners": "https://127.0.0.1:0,http://127.0.0.1:0",
        "ssl.certfile": str(identity.certificate),
        "ssl.keyfile": str(identity.key),
    }
    with GatewayThread(broker.bootstrap, settings) as running:
        yield running, authority


def test_https(secure):
    """R29. Is the same served over TLS, to those who trust the certificate, and do links say https?"""
    gateway, authority = secure
    trusting = ssl.create_default_context(cafile=authority.file)
    found = httpx.get(f"{gateway.url}/v3/clusters", verify=trusting).json()
    plain = httpx.get(f"{gateway.gateway.addresses[1].url}/v3/clusters").json()

    assert found["metadata"]["self"].startswith("https://127.0.0.1:")
    assert plain["metadata"]["self"].startswith("http://127.0.0.1:")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{gateway.url}/v3/clusters", verify=ssl.create_default_context())


def test_old_tls(secure):
    """Is TLS below 1.2 refused?"""
    gateway, authority = secure
    old = ssl.create_default_context(cafile=authority.file)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{gateway.url}/healthy", verify=old)


def test_plain_words_to_the_https_door(secure):
    """Does HTTP on the https listener end without an answer, and the door stay open?"""
    gateway, authority = secure
    with pytest.raises(httpx.HTTPError):
        httpx.get(gateway.url.replace("https", "http"), timeout=TIMEOUT_S)

    assert httpx.get(f"{gateway.url}/healthy", verify=ssl.create_default_context(cafile=authority.file)).is_success
