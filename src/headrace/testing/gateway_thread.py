"""A real gateway inside a test's process, on a thread and a loop of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.gateway.gateway import Gateway
from headrace.settings.gateway import GatewayConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

Result = TypeVar("Result")
_ANSWER_S = 30.0


class GatewayThread:
    """A gateway before a cluster; a context manager.

    with GatewayThread(cluster.bootstrap) as gateway:
        urllib.request.urlopen(f"{gateway.url}/topics")
    """

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str] | None = None, *, mount: Callable[..., None] | None = None
    ) -> None:
        """`settings` go over the defaults; the port is a free one."""
        self._config = GatewayConfig(
            {"listeners": "http://127.0.0.1:0", "bootstrap.servers": bootstrap, **(settings or {})}
        )
        self._mount = mount
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headrace-gateway", daemon=True)
        self.gateway: Gateway | None = None

    @property
    def url(self) -> str:
        """Where it is reached."""
        assert self.gateway is not None
        return self.gateway.addresses[0].url

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do something on the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_S)

    def start(self) -> None:
        """Come up."""
        self._thread.start()
        self.call(self._start())

    async def _start(self) -> None:
        self.gateway = Gateway(self._config, mount=self._mount)
        await self.gateway.start()

    def stop(self) -> None:
        """Go down."""
        if self.gateway is not None:
            self.call(self.gateway.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
