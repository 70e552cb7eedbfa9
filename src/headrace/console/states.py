"""What stands where nothing is yet: loading, empty, failed. And the small parts that pages are made of."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from nicegui import ui

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


def loading(rows: int = 4) -> None:
    """Grey bars where the content will be."""
    with ui.element("div").classes("hr-card hr-loading").props('role="status" aria-label="Loading"'):
        for number in range(rows):
            ui.element("div").classes("hr-bar").style(f"width: {92 - 13 * (number % 3)}%")


@contextlib.contextmanager
def empty(icon: str, title: str, sentence: str) -> Iterator[None]:
    """Nothing is there: say so, say what to do; buttons go inside."""
    with ui.element("div").classes("hr-card hr-empty"):
        ui.icon(icon).classes("hr-empty-icon")
        ui.label(title).classes("hr-empty-title")
        ui.label(sentence).classes("hr-empty-text")
        with ui.row().classes("hr-actions"):
            yield


def failed(sentence: str, retry: Callable[[], Awaitable[None] | None]) -> None:
    """It could not be had: why, and a button to try again."""
    with ui.element("div").classes("hr-card hr-empty hr-failed").props('role="alert"'):
        ui.icon("cloud_off").classes("hr-empty-icon")
        ui.label("This could not be loaded").classes("hr-empty-title")
        ui.label(sentence).classes("hr-empty-text")
        ui.button("Try again", icon="refresh", on_click=retry).props("unelevated no-caps")


def missing(sentence: str, retry: Callable[[], Awaitable[None] | None]) -> None:
    """Nothing of that name is there: say so; perhaps it comes."""
    with empty("search_off", "This is not there", sentence):
        ui.button("Look again", icon="refresh", on_click=retry).props("flat no-caps")


@contextlib.contextmanager
def heading(title: str, subtitle: str = "", *, back: tuple[str, str] | None = None) -> Iterator[None]:
    """The page's own heading; its actions go inside. `back` is a path and a word."""
    with ui.element("header").classes("hr-heading"):
        with ui.element("div").classes("hr-heading-words"):
            if back is not None:
                ui.link(f"‹ {back[1]}", back[0]).classes("hr-back")
            text("h1", title)
            if subtitle:
                ui.label(subtitle).classes("hr-subtitle")
        with ui.element("div").classes("hr-actions"):
            yield


def text(tag: str, words: str) -> Any:
    """An element with words in it, such as h1 or p."""
    with ui.element(tag) as made:
        ui.html(_escaped(words), sanitize=False, tag="span")
    return made


@contextlib.contextmanager
def card(title: str = "", note: str = "") -> Iterator[None]:
    """A part of a page, with a title."""
    with ui.element("section").classes("hr-card"):
        if title:
            with ui.element("div").classes("hr-card-head"):
                text("h2", title)
                if note:
                    ui.label(note).classes("hr-note")
        yield


def figure(label: str, value: str, note: str = "") -> Callable[..., None]:
    """A number with a name; gives what changes it: change(value, note, tone)."""
    with ui.element("div").classes("hr-figure"):
        ui.label(label).classes("hr-figure-label")
        number = ui.label(value).classes("hr-figure-value")
        below = ui.label(note).classes("hr-figure-note")

    def change(new_value: str, new_note: str = "", tone: str = "") -> None:
        number.text, below.text = new_value, new_note
        number.classes(replace=f"hr-figure-value hr-tone-{tone}" if tone else "hr-figure-value")

    return change


def chip(words: str, tone: str = "plain") -> Any:
    """A small word with a colour: good, warn, bad, plain."""
    return ui.label(words).classes(f"hr-chip hr-chip-{tone}")


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
