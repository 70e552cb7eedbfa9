"""A sentence that comes and goes."""

from __future__ import annotations

from nicegui import ui

_TYPES = {"good": "positive", "bad": "negative", "plain": "info"}


def toast(sentence: str, tone: str = "good") -> None:
    """Say it at the bottom of the page for some seconds."""
    ui.notify(sentence, type=_TYPES[tone], position="bottom", timeout=6000 if tone == "bad" else 3000)  # type: ignore[arg-type]
