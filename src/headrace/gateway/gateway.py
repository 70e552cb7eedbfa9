"""A gateway, assembled: services, application, sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from headrace.gateway.app import make_app
from headrace.gateway.server import Address, GatewayServer
from headrace.gateway.services import Services

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette

    from headrace.settings.gateway import GatewayConfig


class Gateway:
    """One gateway; an asynchronous context manager, or `start` and `stop`."""

    def __init__(self, config: GatewayConfig, *, mount: Callable[[Starlette, Services], None] | None = None) -> None:
        """`mount` adds to the application what lies above the gateway: the console."""
        self.services = Services(config)
        app = make_app(self.services)
        if mount is not None:
            mount(app, self.services)
        self._server = GatewayServer(app, config)

    @property
    def addresses(self) -> list[Address]:
        """Where it listens."""
        return self._server.addresses

    async def start(self) -> None:
        """Come up; ConfigFault if an address cannot be had."""
        await self._server.start()

    async def stop(self) -> None:
        """Go down, requests under way first."""
        # Who is told to come again shall not come here.
        self._server.stop_listening()
        await self.services.leave()
        await self._server.stop()
        await self.services.__aexit__()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
