"""A small part of a page that is built anew when what it shows differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from nicegui import ui

Data = TypeVar("Data")


class Part(Generic[Data]):
    """Stands where it is made, and is empty until something is put in."""

    def __init__(self, build: Callable[[Data], None], *, classes: str = "hr-list") -> None:
        self._build = build
        self._place = ui.element("div").classes(classes)
        self._before: Data | None = None

    def put(self, data: Data) -> None:
        """Show this."""
        if data == self._before:
            return
        self._before = data
        self._place.clear()
        with self._place:
            self._build(data)
