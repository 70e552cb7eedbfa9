"""A table with a search box: sorted by any column, fresh without losing one's place, narrow on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

if TYPE_CHECKING:
    from headrace.console.page import Visit

_CELL = """
<q-td :props="props">
  <a v-if="props.row[props.col.name + '__href']" class="hr-link" :href="props.row[props.col.name + '__href']"
    >{{ props.row[props.col.name + '__text'] }}</a>
  <button v-else-if="props.col.isAction" class="hr-link hr-cell-button"
    @click="$parent.$emit('act', props.row[props.col.name])">{{ props.row[props.col.name + '__text'] }}</button>
  <span v-else-if="props.row[props.col.name + '__tone']"
    :class="'hr-chip hr-chip-' + props.row[props.col.name + '__tone']">{{ props.row[props.col.name + '__text'] }}</span>
  <span v-else>{{ props.row[props.col.name + '__text'] }}</span>
</q-td>
"""
_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: `show` words a value, `href` makes it a link, `tone` a chip (both are given the row)."""

    name: str
    label: str
    show: Callable[[Any], str] = str
    href: Callable[[Mapping[str, Any]], str | None] | None = None
    tone: Callable[[Mapping[str, Any]], str | None] | None = None
    is_number: bool = False
    is_wide: bool = False
    """Left out on a phone."""
    is_narrow: bool = False
    """Only on a phone: what stands there for several columns, on as many lines as it takes."""
    is_action: bool = False
    """A button: `DataTable.on_act` is told the value."""


class DataTable:
    """Rows are mappings by the columns' names; `key` names what tells them apart."""

    def __init__(
        self,
        visit: Visit,
        columns: Iterable[Column],
        rows: Iterable[Mapping[str, Any]],
        *,
        key: str,
        search: str | None = None,
        query: str = "q",
        sort: str | None = None,
        descending: bool = False,
        nothing: str = "There is nothing here.",
    ) -> None:
        """`search` is what the search box says (none, if None), `query` the parameter of the URL that keeps it.

        `nothing` is said where there are no rows at all; where none fits the search, that is.
        """
        self._columns = list(columns)
        self._key = key
        self._root = visit.root
        self.tools = ui.element("div").classes("hr-tools")
        """What stands above the table, beside the search box."""
        if search is not None:
            with self.tools:
                self._search_box(visit, search, query)
        self.table = ui.table(
            columns=[_quasar(column) for column in self._columns],
            rows=[self._row(row) for row in rows],
            row_key=key,
            pagination={"rowsPerPage": _PAGE, "sortBy": sort or key, "descending": descending},
        ).classes("hr-table")
        self.table.props('flat dense :rows-per-page-options="[25, 50, 200, 0]" rows-per-page-label="Rows"')
        self._fit()
        for column in self._columns:
            self.table.add_slot(f"body-cell-{column.name}", _CELL)
        self.table.props["no-data-label"], self.table.props["no-results-label"] = nothing, "Nothing fits."
        self.table.add_slot("no-data", '<div class="hr-nothing">{{ props.message }}</div>')
        if search is not None and visit.query.get(query):
            self.table.filter = visit.query[query]

    def _search_box(self, visit: Visit, words: str, query: str) -> None:
        def narrow(event: Any) -> None:
            self.table.filter = event.value or ""
            visit.remember(**{query: event.value})

        box = ui.input(placeholder=words, value=visit.query.get(query, ""), on_change=narrow)
        box.props(f'outlined dense clearable debounce=200 aria-label="{words}"').classes("hr-search")
        with box.add_slot("prepend"):
            ui.icon("search")

    def on_act(self, act: Callable[[Any], Any]) -> None:
        """What a button in a cell does."""
        self.table.on("act", lambda event: act(event.args))

    def update(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Newer rows; the page that is looked at, the order and the search stay."""
        fresh = [self._row(row) for row in rows]
        if fresh != self.table.rows:
            self.table.rows = fresh
            self._fit()

    def _fit(self) -> None:
        """Leave the line below the table out where one page holds everything."""
        self.table.props["hide-bottom"] = 0 < len(self.table.rows) <= _PAGE

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {self._key: row[self._key]}
        for column in self._columns:
            value = row.get(column.name)
            made[column.name] = value
            made[f"{column.name}__text"] = "–" if value is None else column.show(value)
            if column.href is not None:
                path = column.href(row)
                made[f"{column.name}__href"] = None if path is None else self._root + path
            if column.tone is not None:
                made[f"{column.name}__tone"] = column.tone(row)
        return made


def _quasar(column: Column) -> dict[str, Any]:
    classes = "hr-wide" if column.is_wide else "hr-narrow" if column.is_narrow else ""
    return {
        "name": column.name,
        "label": column.label,
        "field": column.name,
        "sortable": True,
        "align": "right" if column.is_number else "left",
        "classes": f"{classes} hr-number" if column.is_number else classes,
        "headerClasses": classes,
        "isAction": column.is_action,
    }
