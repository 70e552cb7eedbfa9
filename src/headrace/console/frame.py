"""The house around every page: skip link, header, navigation, light and dark."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from nicegui import ui

from headrace import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request

    from headrace.console.page import Page, Visit

_LOOK_S = 2.0
_COOKIE = "headrace-theme"
_THEMES: dict[str, tuple[bool | None, str, str, str]] = {
    "auto": (None, "brightness_auto", "Light or dark as the system says", "light"),
    "light": (False, "light_mode", "Light", "dark"),
    "dark": (True, "dark_mode", "Dark", "auto"),
}
"""By name: Quasar's value, icon, what it is called, the one after it."""


@contextlib.contextmanager
def frame(request: Request, page: Page, visit: Visit) -> Iterator[None]:
    """The frame; whatever is made inside of it stands in the main part of the page."""
    from headrace.console.page_table import PAGES  # noqa: PLC0415  (the table names the pages, which stand in a frame)

    root = request.scope.get("root_path", "")
    theme = request.cookies.get(_COOKIE, "auto")
    _head(root, theme)
    ui.colors(primary="#0f766e", secondary="#475569", accent="#0f766e", positive="#15803d", negative="#b91c1c")
    with (
        ui.left_drawer(top_corner=True, bordered=False)
        .classes("hr-drawer")
        .props("width=232 breakpoint=1023") as drawer
    ):
        _brand()
        _navigation(PAGES, page)
    with ui.header().classes("hr-header"):
        ui.button(icon="menu", color=None, on_click=drawer.toggle).props('flat round dense aria-label="Menu"').classes(
            "hr-burger"
        )
        _cluster(visit)
        ui.space()
        _theme_switch(theme)
    main = ui.element("main").classes("hr-main").props('tabindex="-1"')
    ui.skip_link(target=main)
    with main:
        yield


def _head(root: str, theme: str) -> None:
    ui.add_head_html(
        f'<link rel="stylesheet" href="{root}/assets/theme.css?v={__version__}">'
        f'<script defer src="{root}/assets/console.js?v={__version__}"></script>'
        + ("<style>html{background:#0b1220}</style>" if theme == "dark" else "")
    )


def _cluster(visit: Visit) -> None:
    """Whom the gateway talks to, and whether they answer."""
    label = ui.label(visit.bootstrap).classes("hr-cluster")

    def look() -> None:
        is_answered = visit.history.is_answered
        label.classes(remove="hr-away") if is_answered else label.classes("hr-away")
        words = "The brokers this gateway talks to" + ("" if is_answered else ", which do not answer")
        label.props(f'title="{words}"')

    ui.timer(_LOOK_S, look)


def _brand() -> None:
    with ui.link(target="/").classes("hr-brand").props('aria-label="Headrace, overview"'):
        ui.html(_MARK, sanitize=False).classes("hr-mark")
        ui.label("Headrace")


def _navigation(pages: Sequence[Page], here: Page) -> None:
    section = ""
    with ui.element("nav").classes("hr-nav").props('aria-label="Pages"'):
        for page in pages:
            if not page.icon:
                continue
            if page.section != section:
                section = page.section
                ui.label(section).classes("hr-nav-section")
            is_here = here is page or (not here.icon and here.section == page.path)
            link = ui.link(target=page.path).classes("hr-nav-link")
            if page.key:
                link.props(f'data-key="{page.key}" title="{page.title} (g {page.key})"')
            if is_here:
                link.classes("hr-here").props('aria-current="page"')
            with link:
                ui.icon(page.icon)
                ui.label(page.title)


def _theme_switch(theme: str) -> None:
    name = theme if theme in _THEMES else "auto"
    dark = ui.dark_mode(_THEMES[name][0])
    button = (
        ui.button(icon=_THEMES[name][1], color=None)
        .props('flat round dense aria-label="Light or dark"')
        .classes("hr-theme")
    )
    with button:
        tip = ui.tooltip(_THEMES[name][2])

    def turn() -> None:
        nonlocal name
        name = _THEMES[name][3]
        value, icon, words, _ = _THEMES[name]
        dark.value = value
        button.props(f"icon={icon}")
        tip.text = words
        ui.run_javascript(f'document.cookie = "{_COOKIE}={name}; path=/; max-age=31536000; SameSite=Strict"')

    button.on_click(turn)


_MARK = (
    '<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true"><rect width="24" height="24" rx="6" '
    'fill="#0f766e"/><path d="M4 9c3-3 5-3 8 0s5 3 8 0M4 15c3-3 5-3 8 0s5 3 8 0" fill="none" stroke="#fff" '
    'stroke-width="2.2" stroke-linecap="round"/></svg>'
)
