"""One listening address: accepts connections, counts them, ends those that overstay."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from headrace.net.connection import Connection, Limits, Service
from headrace.net.frame_buffers import FrameBuffers
from headrace.net.pacing import unpace

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

_ACCEPTING_TURNS = 3
_CLOSING_TURNS_MAX = 100
_SWEEP_S = 1.0


class Listener:
    """A bound address and the connections accepted on it."""

    def __init__(
        self,
        service: Service,
        *,
        name: str,
        limits: Limits,
        connections_max: int,
        connections_per_address_max: int,
        on_refuse: Callable[[str, str], None],
        address_exceptions: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self.connections: dict[Connection, None] = {}
        """In the order they came."""
        self.host, self.port = "", 0
        self._service = service
        self._limits = limits
        self._connections_max = connections_max
        self._per_address_max = connections_per_address_max
        self._per_address: Counter[str] = Counter()
        self._on_refuse = on_refuse
        self._address_exceptions = address_exceptions or {}
        self._buffers = FrameBuffers(limits.partial_bytes_max)
        self._server: asyncio.Server | None = None
        self._paced = b""
        self._sweeper: asyncio.TimerHandle | None = None
        self._stopping = False

    @property
    def partial_bytes(self) -> int:
        """Bytes held in requests that are not complete yet."""
        return self._buffers.held_bytes

    async def start(self, host: str | None, port: int, *, backlog: int, tls: ssl.SSLContext | None = None) -> None:
        """Bind and accept; port 0 takes a free one, told by `port` afterwards."""
        await self.bind(host, port, backlog=backlog, tls=tls)
        await self.serve()

    async def bind(self, host: str | None, port: int, *, backlog: int, tls: ssl.SSLContext | None = None) -> None:
        """Take the address and let nobody in yet."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept, host or None, port, backlog=backlog, ssl=tls, start_serving=False
        )
        self._paced = unpace(self._server.sockets)
        address = self._server.sockets[0].getsockname()
        self.host, self.port = str(address[0]), int(address[1])

    async def serve(self) -> None:
        """Accept connections on the bound address."""
        assert self._server is not None, "bound first"
        await self._server.start_serving()
        self._sweep()

    def _accept(self) -> Connection:
        return Connection(
            self._service,
            limits=self._limits,
            listener_name=self.name,
            buffers=self._buffers,
            on_close=self._closed,
            on_open=self._opened,
            paced=self._paced,
        )

    def _opened(self, connection: Connection) -> None:
        """Count the new connection, or close it at once where a limit is reached."""
        self.connections[connection] = None
        self._per_address[connection.peer[0]] += 1
        if self._stopping:
            # Accepted just before the server was closed: nobody will look after it.
            connection.close("")
        elif len(self.connections) > self._connections_max:
            connection.close("too many connections (max.connections)")
        elif self._per_address[connection.peer[0]] > self._address_exceptions.get(
            connection.peer[0], self._per_address_max
        ):
            connection.close("too many connections from one address (max.connections.per.ip)")

    def _closed(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._per_address[connection.peer[0]] -= 1
        if not self._per_address[connection.peer[0]]:
            del self._per_address[connection.peer[0]]
        if connection.close_reason:
            self._on_refuse(connection.peer[0], connection.close_reason)

    def _sweep(self) -> None:
        """End connections that have been silent for too long, then look again later."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self.connections):
            if (reason := connection.overdue(now)) is not None:
                connection.close(reason)
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep)

    async def stop(self) -> None:
        """Stop accepting and end every connection."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is None:
            return
        loop = asyncio.get_running_loop()
        if isinstance(loop, asyncio.SelectorEventLoop):
            # Python's own loop never closes a connection that it has taken and not begun when its server is closed.
            for one in self._server.sockets:
                loop.remove_reader(one.fileno())
            for _ in range(_ACCEPTING_TURNS):
                await asyncio.sleep(0)
        self._server.close()
        for connection in list(self.connections):
            connection.close("")
        # Turns of the loop let the transports run their closing callbacks, and one that was being accepted show up.
        for turn in range(_CLOSING_TURNS_MAX):
            if not self.connections and turn >= _ACCEPTING_TURNS:
                break
            await asyncio.sleep(0)
