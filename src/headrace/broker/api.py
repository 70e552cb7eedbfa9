"""What a handler file declares: its key, its versions, its function; declaring it is what advertises it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.broker import Broker
    from headrace.model.errors import KafkaError
    from headrace.net.connection import Connection
    from headrace.wire.header import RequestHeader

FORWARDED = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 57, 64, 80, 81})
"""APIs that are the active controller's to answer, and that a broker which is asked hands on (KIP-590)."""

AMONG_NODES = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""APIs that only nodes speak, and only at a controller's listener, by Kafka's schemas."""


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
    refuse: Callable[[Any, KafkaError], Any] | None = None
    """(request, error) -> response, for a forwarded request that nobody could be found to answer."""

    @property
    def is_forwarded(self) -> bool:
        """Whether only the active controller can answer, so that others hand the request on to it."""
        return self.key in FORWARDED

    @property
    def on_brokers(self) -> bool:
        """Whether clients are served it on the listeners of brokers."""
        return self.key not in AMONG_NODES
