"""The doorkeeper before every route: whose Host, whose Origin, how many at a time.

A page of some other site that made its name point to this machine (DNS rebinding) sends that name as Host; a page that
opens a WebSocket sends its Origin. Neither is served unless a person allowed it.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.websockets import WebSocket

from headrace.gateway.problem import Problem
from headrace.gateway.route import JSON, SLASH, encode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from headrace.settings.gateway import GatewayConfig


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, config: GatewayConfig) -> None:
        self._app = app
        self._origins = frozenset(config["access.control.allow.origin"])
        self._hosts = _own_names() | {name.lower() for name in config["allowed.hosts"]}
        self._most = config["connections.max"]
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        problem = self._objection(scope)
        if problem is not None:
            await refuse(problem, scope, receive, send)
            return
        _keep_slashes(scope)
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1

    def _objection(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if SLASH in scope["path"]:
            return Problem(400, 400, "There is a zero byte in the path.")
        host = host_name(headers.get("host", ""))
        if host is None or not self._is_allowed(host):
            shown = (host or "")[:100]
            return Problem(
                421, 421, f"This gateway is not known as '{shown}'; its allowed.hosts say how it may be called."
            )
        if self._now >= self._most:
            return Problem(503, 503, "Too many requests are under way (connections.max).", headers={"retry-after": "1"})
        origin = headers.get("origin")
        if scope["type"] == "websocket" and origin is not None and not self._may_connect(origin, headers["host"]):
            return Problem(403, 403, f"Pages from {origin[:100]} may not connect here (access.control.allow.origin).")
        return None

    def _is_allowed(self, host: str) -> bool:
        if host in self._hosts or "*" in self._hosts:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def _may_connect(self, origin: str, host: str) -> bool:
        return "*" in self._origins or origin in self._origins or urlsplit(origin).netloc.lower() == host.lower()


def _keep_slashes(scope: Scope) -> None:
    """Names may have slashes in them, and come as %2F; the server has decoded these already."""
    raw = scope.get("raw_path", b"")
    if b"%2f" in raw.lower():
        scope["path"] = "/".join(unquote(part.decode("ascii")).replace("/", SLASH) for part in raw.split(b"/"))


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower() or None
    except ValueError:
        return None


def _own_names() -> frozenset[str]:
    own = socket.gethostname().lower()
    return frozenset({"localhost", own, f"{own}.local"})


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a problem, whatever was asked for."""
    if scope["type"] == "websocket":
        websocket = WebSocket(scope, receive, send)
        await websocket.send_denial_response(problem_response(problem)) if "websocket.http.response" in scope.get(
            "extensions", {}
        ) else await websocket.close(1008, problem.message[:120])
        return
    await problem_response(problem)(scope, receive, send)


def problem_response(problem: Problem, media: str = JSON) -> Response:
    """A problem as an answer."""
    headers: dict[str, Any] = {"cache-control": "no-store", **problem.headers}
    return Response(encode(problem.body()), problem.status, headers, media)
