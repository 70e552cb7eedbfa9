"""What a handler file declares: its key, its versions, its function; declaring it is what advertises it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.broker import Broker
    from headrace.net.connection import Connection
    from headrace.wire.header import RequestHeader


class Call:
    """One request on its way through the broker: who asks, and in which version."""

    __slots__ = ("broker", "connection", "header")

    def __init__(self, broker: Broker, connection: Connection, header: RequestHeader) -> None:
        self.broker = broker
        self.connection = connection
        self.header = header

    @property
    def version(self) -> int:
        """The version the client speaks, for the few answers that differ in meaning."""
        return self.header.api_version


class Api(Struct, frozen=True, kw_only=True):
    """One served API."""

    key: int
    low: int
    high: int
    handle: Callable[..., Any]
    """(call, request) -> response or awaitable; with `raw`, (call, frame, position) -> buffers or a pending reply."""
    raw: bool = False
    advertised_low: int | None = None
    """Told to clients instead of `low`, where they need to hear of versions we refuse."""
    controller: bool = False
    """Also answered on a controller listener."""
