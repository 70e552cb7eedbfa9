"""What a page is, and one person's visit to it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from nicegui import Client, ui
from starlette.requests import Request

from headrace.console.equivalents import Where
from headrace.console.frame import frame
from headrace.console.mounting import HISTORY, SERVICES
from headrace.console.states import empty, heading

if TYPE_CHECKING:
    from starlette.responses import Response

    from headrace.gateway.history import History
    from headrace.gateway.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A path, how it is called, and what builds it."""

    path: str
    title: str
    """Of the browser's tab; the page's own heading is its own business."""
    build: Callable[[Visit], Awaitable[None] | None]
    """Puts elements on the page at once; what has to be asked for comes later, with `Live`."""
    icon: str = ""
    """A material icon; a page with one stands in the navigation."""
    section: str = ""
    """Under which heading of the navigation; a page without an icon names the path of its parent here."""
    key: str = ""
    """The letter that, after g, leads there."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One person on one page."""

    services: Services
    history: History
    path: dict[str, str]
    """What stands in the path's braces."""
    query: dict[str, str]
    """What stands behind the question mark; `remember` keeps it true."""
    base: str
    """The gateway as this browser knows it: http://host:port."""
    here: str
    """This page's path, as links write it."""
    root: str
    """What stands before a page's path in a link that NiceGUI does not make."""

    @property
    def bootstrap(self) -> str:
        """The brokers, as commands name them."""
        return str(self.services.client.get("bootstrap.servers", "localhost:9092"))

    @property
    def where(self) -> Where:
        """What commands that do the same elsewhere have to name."""
        return Where(bootstrap=self.bootstrap, base=self.base, cluster_id=self.history.cluster_id or "$CLUSTER_ID")

    def remember(self, **values: object) -> None:
        """Keep the view in the URL, so that it can be sent to somebody; None and "" take a value out."""
        for name, value in values.items():
            if value is None or value == "":
                self.query.pop(name, None)
            else:
                self.query[name] = str(value)
        # An address relative to this one: whatever prefix the gateway is behind stays.
        ui.run_javascript(f"history.replaceState(null, '', location.pathname + {_script_text(self.query)})")


def _script_text(query: dict[str, str]) -> str:
    text = f"?{urlencode(query)}" if query else ""
    return "'" + text.replace("\\", "\\\\").replace("'", "%27") + "'"


def link_to(path: str, **query: object) -> str:
    """A link to a page with parameters; None and "" are left out."""
    kept = {name: str(value) for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(kept)}" if kept else path


def named(path: str, *names: str) -> str:
    """A path with names in its braces, quoted: `named("/topics/{}", "a/b")`."""
    return path.format(*(quote(name, safe="") for name in names))


def register(page: Page) -> None:
    """Serve a page."""

    async def show(request: Request) -> None:
        visit = _visit(request, page)
        if visit.path:
            ui.page_title(" · ".join([*visit.path.values(), title]))
        with frame(request, page, visit):
            built = page.build(visit)
            if inspect.isawaitable(built):
                await built

    title = f"{page.title} · Headrace" if page.path != "/" else "Headrace"
    ui.page(page.path, title=title)(show)


def _visit(request: Request, page: Page) -> Visit:
    return Visit(
        services=request.scope[SERVICES],
        history=request.scope[HISTORY],
        path=dict(request.path_params),
        query=dict(request.query_params),
        base=f"{request.url.scheme}://{request.url.netloc}",
        here=page.path,
        root=request.headers.get("x-forwarded-prefix", "") + request.scope.get("root_path", ""),
    )


def not_found(request: Request) -> Response:
    """What an address gets that leads to no page: the house, and the way back."""
    client = Client(ui.page("", title=f"{_NOWHERE.title} · Headrace"), request=request)
    with client, frame(request, _NOWHERE, _visit(request, _NOWHERE)):
        _nowhere()
    return client.build_response(request, HTTPStatus.NOT_FOUND)


def _nowhere(_: Visit | None = None) -> None:
    with heading("Not found"):
        pass
    with empty("search_off", "There is no page here", "The address may be mistyped, or from another version."):
        ui.button("Overview", icon="dashboard", on_click=lambda: ui.navigate.to("/")).props("unelevated no-caps")


_NOWHERE = Page(path="", title="Not found", build=_nowhere, section="nowhere")
