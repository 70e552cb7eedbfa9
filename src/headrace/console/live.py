"""A part of a page that is asked for: loading, there, failed with a way to try again, and kept fresh.

Asking stops when the tab is gone: NiceGUI ends the timer with the page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Generic, TypeVar

from nicegui import ui

from headrace.console.states import failed, loading, missing
from headrace.gateway.problem import problem_of

Data = TypeVar("Data")
Update = Callable[[Data], None]
logger = logging.getLogger(__name__)
_TIMEOUT_S = 20.0


class Live(Generic[Data]):
    """Loads, shows, and looks again every few seconds.

    `show` builds the elements and may give a function that puts newer data into them; without one they are built anew
    whenever the data differs.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[Data]],
        show: Callable[[Data], Update[Data] | None],
        *,
        every_s: float | None = None,
    ) -> None:
        """Stands where it is made."""
        self._load = load
        self._show = show
        self._update: Update[Data] | None = None
        self._before: Data | None = None
        self._is_shown = False
        self._is_asking = False
        self._warning = ui.element("div").classes("hr-stale").props('role="status"')
        self._warning.set_visibility(False)
        self._place = ui.element("div").classes("hr-live")
        with self._place:
            loading()
        if every_s is None:
            ui.timer(0.01, self.look, once=True)
        else:
            ui.timer(every_s, self.look)

    async def look(self) -> None:
        """Ask now."""
        if self._is_asking:
            return
        self._is_asking = True
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                data = await self._load()
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told and can try again)
            self._fail(error)
        else:
            self._put(data)
        finally:
            self._is_asking = False

    def _put(self, data: Data) -> None:
        self._warning.set_visibility(False)
        if self._is_shown and self._update is not None:
            self._update(data)
        elif not self._is_shown or data != self._before:
            self._place.clear()
            with self._place:
                self._update = self._show(data)
            self._is_shown = True
        self._before = data

    def _fail(self, error: Exception) -> None:
        sentence = sentence_of(error)
        if self._is_shown:
            self._warning.clear()
            with self._warning:
                ui.icon("cloud_off")
                ui.label(f"{sentence} What you see is what was known before.")
            self._warning.set_visibility(True)
            return
        self._place.clear()
        with self._place:
            (missing if is_missing(error) else failed)(sentence, self._again)

    async def _again(self) -> None:
        self._place.clear()
        with self._place:
            loading()
        await self.look()


def is_missing(error: Exception) -> bool:
    """Whether the cluster was asked, and there is no such thing."""
    problem = problem_of(error)
    return problem is not None and problem.status == HTTPStatus.NOT_FOUND


def sentence_of(error: BaseException) -> str:
    """What went wrong, for a person; what is our own mistake goes to the log."""
    if isinstance(error, TimeoutError):
        return "The cluster did not answer in time."
    problem = problem_of(error) if isinstance(error, Exception) else None
    if problem is not None:
        return problem.message
    logger.error("console_mistake", exc_info=error)
    return "The console made a mistake, which the gateway's log tells more about."
