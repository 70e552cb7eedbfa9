"""The page on which people read and try what the gateway serves: one file, with nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Route as StarletteRoute

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from headrace.gateway.services import Services

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def page_text() -> str:
    """The page; what it shows it reads from /openapi."""
    return files("headrace.gateway").joinpath("pages/docs.html").read_text(encoding="utf-8")


def content_policy(page: str) -> str:
    """What a browser may do on the page: run what stands in it, and ask the gateway."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for kind, text in _INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    rules = [
        "default-src 'none'",
        "connect-src 'self'",
        f"style-src {' '.join(hashes['style'])}",
        f"script-src {' '.join(hashes['script'])}",
        "frame-ancestors 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def routes(_: Services) -> list[BaseRoute]:
    """The page's place."""
    page = page_text()
    headers = {"content-security-policy": content_policy(page), "cache-control": "no-cache"}

    async def show(_: Request) -> Response:
        return HTMLResponse(page, headers=headers)

    return [StarletteRoute("/docs", show, include_in_schema=False)]
