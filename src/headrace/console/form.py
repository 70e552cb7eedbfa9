"""A dialog with fields, a button that does something, and the sentence if it could not be done."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator

from nicegui import ui

from headrace.console.live import sentence_of
from headrace.gateway.problem import bad_request


class Form:
    """What a dialog does when its button is pressed; `submit` is set by whoever made it."""

    def __init__(self) -> None:
        self.submit: Callable[[], Awaitable[None]] | None = None
        self._problem: ui.label | None = None
        self._button: ui.button | None = None
        self._dialog: ui.dialog | None = None

    def ready(self, dialog: ui.dialog, problem: ui.label, button: ui.button) -> None:
        """The parts, once they are made."""
        self._dialog, self._problem, self._button = dialog, problem, button

    async def go(self) -> None:
        """Do it; the dialog closes if that worked, and says why if not."""
        assert self.submit is not None
        assert self._dialog is not None
        assert self._problem is not None
        assert self._button is not None
        self._button.disable()
        self._problem.set_visibility(False)
        try:
            await self.submit()
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            self._problem.text = sentence_of(error)
            self._problem.set_visibility(True)
            return
        finally:
            self._button.enable()
        self._dialog.close()


@contextlib.contextmanager
def dialog_form(title: str, verb: str, *, is_wide: bool = False, icon: str = "") -> Iterator[Form]:
    """A dialog; the fields go inside."""
    form = Form()
    with ui.dialog(value=True) as dialog, ui.card().classes("hr-dialog" + (" hr-dialog-wide" if is_wide else "")):
        ui.label(title).classes("hr-dialog-title")
        yield form
        problem = ui.label().classes("hr-problem").props('role="alert"')
        problem.set_visibility(False)
        with ui.row().classes("hr-dialog-actions"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button = ui.button(verb, icon=icon or None, on_click=form.go).props('unelevated no-caps data-test="submit"')
    form.ready(dialog, problem, button)
    dialog.on("hide", dialog.delete)


def settings_of(text: str, *, is_lenient: bool = False) -> dict[str, str]:
    """Lines of name=value; a line that is none is a Problem, or left out."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, sign, value = line.partition("=")
        if sign and name.strip():
            found[name.strip()] = value.strip()
        elif line.strip() and not is_lenient:
            raise bad_request(f"Line {number} of the settings is not name=value.")
    return found
