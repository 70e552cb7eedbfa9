"""The panel under every view and in every dialog: copy it as a command, as curl, as Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nicegui import ui

from headrace.console.equivalents import Equivalent

_TONGUES = (("cli", "Command line", "terminal"), ("curl", "curl", "language"), ("python", "Python", "code"))


class EquivalentsPanel:
    """Closed until somebody wants it; `change` as the view changes."""

    def __init__(self, equivalent: Equivalent, *, title: str = "Do this elsewhere", is_open: bool = False) -> None:
        """Stands where it is made."""
        self._bodies: dict[str, Any] = {}
        self._given = equivalent
        with ui.expansion(title, icon="content_copy", value=is_open).classes("hr-elsewhere").props("dense"):
            self._place = ui.element("div").classes("hr-codes")
        self._fill()

    def change(self, equivalent: Equivalent) -> None:
        """The view is another one now."""
        if equivalent != self._given:
            self._given = equivalent
            self._fill()

    def _fill(self) -> None:
        self._place.clear()
        with self._place:
            for name, words, icon in _TONGUES:
                text = getattr(self._given, name)
                if text:
                    code_block(text, words, icon)


def code_block(text: str, words: str, icon: str) -> None:
    """Code with a name and a button that copies it."""
    with ui.element("div").classes("hr-code"):
        with ui.element("div").classes("hr-code-head"):
            ui.icon(icon)
            ui.label(words)
            ui.space()
            button = ui.button("Copy").props(f'flat dense no-caps size=sm aria-label="Copy as {words}"')
            button.on("click", js_handler=f"(event) => hrCopy({json.dumps(text)}, event.currentTarget)")
        ui.html(_escaped(text), sanitize=False, tag="pre").props('tabindex="0"')


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def elsewhere(make: Callable[[], Equivalent]) -> EquivalentsPanel:
    """A panel for what `make` says now."""
    return EquivalentsPanel(make())
