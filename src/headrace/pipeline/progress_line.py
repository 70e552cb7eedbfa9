"""One line per query for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.pipeline.progress import QueryProgress

HEADINGS = ("QUERY", "BATCH", "ROWS", "ROWS/S", "LAG", "LAG-TIME", "BATCH-TIME", "STATE-ROWS", "LATE")
_LEFT = 1


def cells(progress: QueryProgress) -> tuple[str, ...]:
    """What stands in the columns."""
    return (
        progress.query,
        str(progress.batch_id),
        f"{progress.rows_total:,}",
        f"{progress.rows_per_second:,.0f}",
        "?" if progress.lag_records is None else f"{progress.lag_records:,}",
        "?" if progress.lag_ms is None else seconds(progress.lag_ms),
        seconds(progress.batch_ms),
        "?" if progress.state_rows is None else f"{progress.state_rows:,}",
        f"{progress.late_rows_total:,}",
    )


def table(progresses: list[QueryProgress]) -> list[str]:
    """A heading and a line per query, in columns."""
    rows = [HEADINGS, *(cells(one) for one in progresses)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    return [
        "  ".join(
            f"{text:<{width}}" if place < _LEFT else f"{text:>{width}}"
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def table_of_documents(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same from what was written down of a run; nothing if nothing was."""
    return table([QueryProgress.from_document(one) for one in documents]) if documents else []


def line(progress: QueryProgress) -> str:
    """One query on a line that stands alone: in a log, or where no cursor can go back."""
    _, batch, rows, rate, lag, lag_time, batch_time, state, late = cells(progress)
    return (
        f"{progress.query}: batch {batch}, {rows} rows in all, {rate} rows/s, {lag} records ({lag_time}) behind, "
        f"batch {batch_time}, {state} state rows, {late} late"
    )


def seconds(duration_ms: int) -> str:
    """A duration short enough for a column."""
    if duration_ms < 10_000:
        return f"{duration_ms / 1000:.1f} s"
    if duration_ms < 120_000:
        return f"{duration_ms // 1000} s"
    return f"{duration_ms // 60_000} min"
