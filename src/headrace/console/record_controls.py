"""The controls above a list of records: from where, which partition, how many, what fits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import ui

from headrace.console.record_query import LIMIT_MAX, STARTS, RecordQuery

_LIMITS = (20, 100, 500, LIMIT_MAX)
_ALL = "all"
_SYNTAX = 'value.speed > 90 and key == "t-1"'


class RecordControls:
    """Stands where it is made; `on_change` is told the new question."""

    def __init__(self, query: RecordQuery, on_change: Callable[[RecordQuery], Awaitable[None]]) -> None:
        self._query = query
        self._on_change = on_change
        self._zone: Any = UTC
        with ui.element("div").classes("hr-controls"):
            self._start = ui.select(STARTS, value=query.start, on_change=self._start_chosen)
            self._start.props('outlined dense options-dense aria-label="From" data-test="from"').classes("hr-from")
            self._offset = ui.number(value=query.offset, min=0, precision=0, on_change=self._offset_chosen)
            self._offset.props('outlined dense debounce=400 aria-label="Offset"').style("width: 130px")
            self._time = ui.input(on_change=self._time_chosen)
            self._time.props('outlined dense type=datetime-local step=0.001 debounce=400 aria-label="Time"')
            self._partition = ui.select(
                {_ALL: "All partitions"},
                value=_ALL,
                on_change=lambda event: self._put(partition=None if event.value == _ALL else event.value),
            )
            self._partition.props('outlined dense options-dense aria-label="Partition"').style("width: 150px")
            self._limit = ui.select(
                {number: f"{number} records" for number in sorted({*_LIMITS, query.limit})},
                value=query.limit,
                on_change=lambda event: self._put(limit=event.value),
            )
            self._limit.props('outlined dense options-dense aria-label="How many"').style("width: 140px")
            self._filter = ui.input(
                placeholder=_SYNTAX, value=query.filter, on_change=lambda event: self._put(filter=event.value or "")
            )
            self._filter.props(
                'outlined dense clearable debounce=400 aria-label="Filter" data-test="filter" autocomplete=off '
                "no-error-icon hide-bottom-space spellcheck=false"
            ).classes("hr-filter hr-mono")
            with self._filter.add_slot("prepend"):
                ui.icon("filter_alt")
        self._show_fields()

    def _show_fields(self) -> None:
        start = self._query.start
        self._offset.set_visibility(start == "offset")
        self._time.set_visibility(start == "time")
        self._limit.set_visibility(start != "live")

    async def find_zone(self) -> None:
        """Ask the browser where it is, so that times are those on its wall."""
        try:
            name = await ui.run_javascript("Intl.DateTimeFormat().resolvedOptions().timeZone", timeout=3)
            self._zone = ZoneInfo(str(name))
        except (TimeoutError, ZoneInfoNotFoundError, ValueError):
            self._zone = UTC
        if self._query.time_ms is not None:
            moment = datetime.fromtimestamp(self._query.time_ms / 1000, self._zone)
            self._time.value = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")

    def know_partitions(self, numbers: Sequence[int]) -> None:
        """Which partitions there are to choose from."""
        options: dict[Any, str] = {_ALL: "All partitions", **{number: f"Partition {number}" for number in numbers}}
        chosen = self._query.partition
        self._partition.set_options(options, value=chosen if chosen in numbers else _ALL)

    def complain(self, sentence: str) -> None:
        """Say what is wrong with the filter; nothing, if empty."""
        self._filter.error = sentence or None

    # --- changes

    async def _put(self, **changes: Any) -> None:
        fresh = self._query.but(**changes)
        if fresh != self._query:
            self._query = fresh
            self._show_fields()
            await self._on_change(fresh)

    async def _start_chosen(self, event: Any) -> None:
        changes: dict[str, Any] = {"start": event.value}
        if event.value == "time" and self._query.time_ms is None:
            now = datetime.now(self._zone).replace(second=0, microsecond=0)
            changes["time_ms"] = int(now.timestamp() * 1000) - 3_600_000
            await self._put(**changes)
            await self.find_zone()
            return
        await self._put(**changes)

    async def _offset_chosen(self, event: Any) -> None:
        await self._put(offset=int(event.value or 0))

    async def _time_chosen(self, event: Any) -> None:
        try:
            moment = datetime.fromisoformat(event.value or "").replace(tzinfo=self._zone)
        except ValueError:
            return
        await self._put(time_ms=round(moment.timestamp() * 1000))
