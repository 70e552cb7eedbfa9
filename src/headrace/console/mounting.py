"""How the console gets onto the gateway's application.

NiceGUI has one application per process, which wants to live inside a FastAPI application. That one is made once and
mounted; each request carries along the services of the gateway it came through.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from headrace.gateway.guard import refuse
from headrace.gateway.history import History
from headrace.gateway.metrics import lag_families
from headrace.gateway.problem import Problem
from headrace.gateway.route import SLASH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import FastAPI
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from headrace.gateway.services import Services

PREFIX = "/console"
SERVICES = "headrace.services"
HISTORY = "headrace.history"
"""Where in a request's scope the gateway's services and its memory are."""
ASSETS = Path(__file__).parent / "assets"
_RECONNECT_S = 30.0
"""For so long a browser that lost the gateway finds its page as it was."""
_MESSAGES_KEPT = 500


def mount_console(app: Starlette, services: Services) -> None:
    """Put the console under /console and let `/` lead to it."""
    console = _application()
    history = History(services)
    services.meters.sources.append(lambda: lag_families(history, time.time()))
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(main: Starlette) -> AsyncIterator[Any]:
        async with inner(main) as state, history, console.router.lifespan_context(console):
            yield state

    app.router.lifespan_context = lifespan
    app.router.routes.append(Route("/", _to_console, include_in_schema=False))
    app.router.routes.append(Mount(PREFIX, app=_Door(console, services, history)))


async def _to_console(_: Request) -> RedirectResponse:
    return RedirectResponse(f"{PREFIX}/")


@functools.cache
def _application() -> FastAPI:
    # NiceGUI keeps a person's storage in files; nothing here uses it.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", os.devnull)
    from fastapi import FastAPI  # noqa: PLC0415  (NiceGUI is imported once, when a console is really wanted)
    from nicegui import app as pages  # noqa: PLC0415
    from nicegui import core, ui  # noqa: PLC0415

    from headrace.console.page import not_found, register  # noqa: PLC0415
    from headrace.console.page_table import PAGES  # noqa: PLC0415

    core.sio.eio.cors_allowed_origins = None  # only pages of this gateway, whatever the transport
    pages.add_static_files("/assets", str(ASSETS))
    for page in PAGES:
        register(page)
    of_files: Any = pages.exception_handlers[404]

    @pages.exception_handler(404)
    async def nothing_here(request: Request, error: Exception) -> Any:
        is_page = request.scope.get("endpoint") in {None, pages}
        return not_found(request) if is_page else await of_files(request, error)

    console = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.run_with(
        console,
        title="Headrace",
        favicon=ASSETS / "favicon.svg",
        dark=None,
        tailwind=False,
        reconnect_timeout=_RECONNECT_S,
        message_history_length=_MESSAGES_KEPT,
        show_welcome_message=False,
        binding_refresh_interval=None,
    )
    return console


class _Door:
    """Hands the services on, and keeps uploads within the gateway's limit."""

    def __init__(self, app: ASGIApp, services: Services, history: History) -> None:
        self._app = app
        self._carried = {SERVICES: services, HISTORY: history}
        self._most = services.config["request.max.bytes"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.update(self._carried)
        scope["path"] = scope["path"].replace(SLASH, "/")  # the console's own routes take names with slashes
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._most:
            problem = Problem(413, 413, f"More than {self._most} bytes are not taken at once (request.max.bytes).")
            await refuse(problem, scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return {"type": "http.disconnect"} if taken > self._most else message

        return bounded
