"""API explorer: every operation of the gateway, tried from here, and said as a command, as curl and as Python.

It reads the same OpenAPI document as everybody (`assets/explorer`); this process only says where that is.
"""

from __future__ import annotations

from html import escape

from nicegui import ui

from headrace import __version__
from headrace.console.page import Page, Visit
from headrace.console.states import heading


def _build(visit: Visit) -> None:
    root = visit.root
    ui.add_head_html(
        f'<link rel="stylesheet" href="{root}/assets/explorer/explorer.css?v={__version__}">'
        f'<script type="module" src="{root}/assets/explorer/explorer.js?v={__version__}"></script>'
    )
    with heading("API explorer", "Everything the gateway serves over HTTP"):
        ui.link("OpenAPI document", f"{visit.base}/openapi", new_tab=True).classes("hr-link")
    base = escape(visit.base)
    ui.html(
        f'<div class="explorer" data-base="{base}" data-bootstrap="{escape(visit.bootstrap)}"></div>', sanitize=False
    ).classes("hr-full")


PAGES = (Page(path="/api", title="API explorer", icon="api", section="More", key="a", build=_build),)
