"""What pipelines tell of themselves, taken in."""

import msgspec

from headrace.client.fetching import FetchedRecord
from headrace.console.data_pipelines import SPAN_MS, ProgressReader
from headrace.pipeline.progress import QueryProgress

NOW_MS = 1_700_000_000_000


def record(value):
    return FetchedRecord("__pipeline_progress", 0, 0, NOW_MS, b"fleet/q", value, ())


def batch(number, time_ms, query="q"):
    progress = QueryProgress(
        pipeline="fleet", query=query, batch_id=number, time_ms=time_ms, rows=1, rows_total=number, rows_per_second=1.0,
        lag_records=None, lag_ms=None, batch_ms=5, state_rows=0, late_rows=0, late_rows_total=0, watermark="",
    )  # fmt: skip
    return record(msgspec.json.encode(progress.document()))


def test_what_is_no_progress_is_passed_over():
    """Do records that are no progress, or none at all, leave the others standing?"""
    reader = ProgressReader(None)
    reader.take([record(None), record(b"{}"), record(b"\xff"), record(b"[1]"), batch(1, NOW_MS), record(b"null")])

    (view,) = reader._views(NOW_MS)
    assert ("fleet/q", 1) == (view.name, view.latest.batch_id)


def test_an_hour_is_kept():
    """Are batches older than an hour forgotten, and is the last one always known?"""
    reader = ProgressReader(None)
    reader.take([batch(1, NOW_MS - SPAN_MS - 1), batch(2, NOW_MS - 10), batch(7, NOW_MS - 2 * SPAN_MS, "old")])

    old, view = reader._views(NOW_MS)
    assert [2] == [one.batch_id for one in view.batches]
    assert (7, False, True) == (old.latest.batch_id, old.is_running, view.is_running)
