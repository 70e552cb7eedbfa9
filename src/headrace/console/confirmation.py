"""Asking before something is destroyed: the person types its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import sentence_of
from headrace.console.toast import toast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headrace.console.equivalents import Equivalent


def confirm(
    title: str,
    sentence: str,
    *,
    name: str,
    verb: str,
    act: Callable[[], Awaitable[None]],
    done: str,
    equivalent: Equivalent | None = None,
    then: Callable[[], Any] | None = None,
) -> None:
    """Ask, act, and say `done`; `then` is called after it worked."""
    with ui.dialog(value=True) as dialog, ui.card().classes("hr-dialog"):
        ui.label(title).classes("hr-dialog-title")
        ui.label(sentence).classes("hr-dialog-text")
        typed = ui.input(f"Type {name} to go on").props("outlined dense autofocus autocomplete=off").classes("hr-full")
        problem = ui.label().classes("hr-problem").props('role="alert"')
        problem.set_visibility(False)
        if equivalent is not None:
            EquivalentsPanel(equivalent)
        with ui.row().classes("hr-dialog-actions"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button = ui.button(verb).props("unelevated no-caps color=negative")
    button.disable()
    typed.on_value_change(lambda event: button.set_enabled(event.value == name))

    async def go() -> None:
        if typed.value != name:
            return
        button.disable()
        try:
            await act()
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            problem.text = sentence_of(error)
            problem.set_visibility(True)
            button.enable()
            return
        dialog.close()
        toast(done)
        if then is not None:
            then()

    button.on_click(go)
    typed.on("keydown.enter", go)
    dialog.on("hide", dialog.delete)
