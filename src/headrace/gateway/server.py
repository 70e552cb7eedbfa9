"""The gateway on its sockets: uvicorn, with limits on what arrives and when."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn

from headrace.gateway.connection import Connection, WebSocketConnection
from headrace.settings.fault import ConfigFault

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.types import ASGIApp

    from headrace.settings.gateway import GatewayConfig

_BACKLOG = 1024
_UNSENT_BYTES = 128 * 1024
"""How much the kernel takes on for a client beyond what is on its way to it; by itself it would take 4 MiB for each."""
_DEFAULT_PORTS = {"http": 8082, "https": 8083}


class Address(NamedTuple):
    """Where the gateway listens."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """As a person types it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class CannotListen(ConfigFault):
    """An address that cannot be had."""


class GatewayServer:
    """Serves an application on the configured listeners."""

    def __init__(self, app: ASGIApp, config: GatewayConfig) -> None:
        self._app = app
        self._config = config
        self._servers: list[tuple[_Server, asyncio.Task[None]]] = []
        self.addresses: list[Address] = []
        """Where it listens; known when it has started, ports that were left open too."""

    async def start(self) -> None:
        """Listen; ConfigFault if an address cannot be had."""
        wanted = [_address(text) for text in self._config["listeners"]]
        tls = _tls(self._config) if any(one.scheme == "https" for one in wanted) else None
        sockets = [_listen(address) for address in wanted]
        for number, (address, opened) in enumerate(zip(wanted, sockets, strict=True)):
            self.addresses.append(address._replace(port=opened.getsockname()[1]))
            # The first has the application's life in its hands; the others only serve it.
            server = _Server(self._uvicorn_config(tls if address.scheme == "https" else None, lifespan=number == 0))
            task = asyncio.create_task(server.serve(sockets=[opened]))
            self._servers.append((server, task))
            listening = asyncio.ensure_future(server.listening.wait())
            await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
            listening.cancel()
            if task.done():
                await task
                raise CannotListen(f"The gateway did not start at {address.url}")

    def stop_listening(self) -> None:
        """Take no more connections; those there are go on."""
        for server, _ in self._servers:
            for listener in server.servers:
                listener.close()

    async def stop(self) -> None:
        """Finish what is under way, within its time, and hang up."""
        for server, _ in reversed(self._servers):
            server.should_exit = True
        for _, task in reversed(self._servers):
            await task
        self._servers.clear()

    def _connection(self) -> Any:
        config = self._config
        return partial(
            Connection,
            timeout_s=config["request.timeout.ms"] / 1000,
            head_bytes_max=config["request.max.header.bytes"],
            is_full=self._is_full,
        )

    def _is_full(self) -> bool:
        most: int = self._config["connections.max"]
        return sum(len(server.server_state.connections) for server, _ in self._servers) > most

    def _uvicorn_config(self, tls: ssl.SSLContext | None, *, lifespan: bool) -> uvicorn.Config:
        config = self._config
        made = uvicorn.Config(
            self._app,
            http=self._connection(),
            ws=WebSocketConnection,
            loop="none",
            lifespan="on" if lifespan else "off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=True,
            backlog=_BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=max(int(config["shutdown.timeout.ms"] / 1000), 1),
            ws_max_size=config["request.max.bytes"],
        )
        if tls is not None:
            made.load()
            made.ssl = tls
        return made


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _address(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in _DEFAULT_PORTS or not host or parts.path not in {"", "/"}:
        raise ConfigFault(f"'{text}' is no listener", "Write http://host:port or https://host:port.")
    return Address(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With its protocol named, asyncio turns Nagle's algorithm off; else every answer waits 40 ms to be acknowledged.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # Connections inherit it: a client that does not read is noticed soon, and nothing more is made for it.
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        opened.bind((address.host, address.port))
    except OSError as problem:
        opened.close()
        raise CannotListen(
            f"The gateway cannot listen at {address.url}: {problem.strerror}",
            "Stop what listens there, or choose another port.",
        ) from None
    opened.setblocking(False)
    return opened


def _tls(config: GatewayConfig) -> ssl.SSLContext:
    certfile, keyfile = config["ssl.certfile"], config["ssl.keyfile"]
    if not certfile:
        raise ConfigFault("An https listener needs a certificate", "Set ssl.certfile and ssl.keyfile.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certfile, keyfile, config["ssl.key.password"])
    except (OSError, ssl.SSLError) as problem:
        raise ConfigFault(f"The certificate in {certfile} cannot be used: {problem}", "Both files are PEM.") from None
    return context
