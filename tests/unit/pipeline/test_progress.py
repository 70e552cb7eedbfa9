"""What Spark reports of a batch, as a person and a program want it."""

import json

from headrace.pipeline.progress import QueryProgress, Tracker, lag_records, positions_of, slowest
from headrace.pipeline.progress_line import line, seconds, table, table_of_documents


def report(*, batch=1, rows=10, end=10, latest=10, dropped=0):
    return {
        "batchId": batch,
        "timestamp": f"2026-11-16T00:00:{batch:02}.000Z",
        "numInputRows": rows,
        "processedRowsPerSecond": 2.5,
        "durationMs": {"triggerExecution": 400},
        "eventTime": {"watermark": "2026-11-15T23:00:00.000Z"},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": dropped}, {"numRowsTotal": 1}],
        "sources": [{"endOffset": {"t": {"0": end}}, "latestOffset": json.dumps({"t": {"0": latest, "1": 0}})}],
    }


def test_a_report_becomes_progress():
    """Do rows, rate, lag, time, state and late rows come out of Spark's report, and totals over several?"""
    tracker = Tracker("fleet", "alerts")
    tracker.take(report(dropped=2), now_ms=1000)
    progress = tracker.take(report(batch=2, end=20, latest=25, dropped=1), now_ms=3000)

    assert progress == QueryProgress(
        pipeline="fleet",
        query="alerts",
        batch_id=2,
        time_ms=3000,
        rows=10,
        rows_total=20,
        rows_per_second=2.5,
        lag_records=5,
        lag_ms=0,
        batch_ms=400,
        state_rows=8,
        late_rows=1,
        late_rows_total=3,
        watermark="2026-11-15T23:00:00.000Z",
    )
    assert tracker.positions == {("t", 0): 20}
    assert QueryProgress.from_document(json.loads(json.dumps(progress.document()))) == progress


def test_state_that_nobody_counts():
    """Where Spark was told not to count its state, is that unknown rather than nothing, in documents and lines?"""
    progress = Tracker("fleet", "alerts", counts_state=False).take(report(), now_ms=0)

    assert progress.state_rows is None
    assert QueryProgress.from_document(json.loads(json.dumps(progress.document()))) == progress
    assert "? state rows" in line(progress)


def test_how_long_records_have_waited():
    """Is the lag in seconds the time since the topics' end passed the point the query is at?"""
    tracker = Tracker("fleet", "alerts")
    waited = [
        tracker.take(report(batch=batch, end=end, latest=latest), now_ms=now_ms).lag_ms
        for batch, end, latest, now_ms in (
            (1, 10, 100, 0),
            (2, 20, 200, 5000),
            (3, 150, 200, 9000),
            (4, 200, 200, 9500),
        )
    ]

    assert waited == [0, 5000, 4000, 0]


def test_a_query_that_falls_behind():
    """Are records counted, and the time they wait, that came while a long batch was under way?"""
    tracker = Tracker("fleet", "alerts")
    tracker.take(report(end=10, latest=10), now_ms=0)
    for now_ms in (1000, 2000, 3000):
        tracker.see({("t", 0): 10 + now_ms // 10}, now_ms=now_ms)
    progress = tracker.take(report(batch=2, end=200, latest=200), now_ms=3000)

    assert (progress.lag_records, progress.lag_ms) == (110, 1000)


def test_reports_without_offsets():
    """Is a report without ends of topics one without a lag, and the last position kept?"""
    tracker = Tracker("fleet", "alerts")
    tracker.take(report(), now_ms=0)
    progress = tracker.take({"batchId": 3, "processedRowsPerSecond": "NaN", "sources": [{"endOffset": None}]}, now_ms=1)

    assert (progress.lag_records, progress.lag_ms, progress.rows_per_second) == (None, None, 0.0)
    assert tracker.positions == {("t", 0): 10}


def test_the_one_behind_counts():
    """Is the position of several queries that of the one behind, and none where one has not begun?"""
    assert slowest([{("t", 0): 5, ("t", 1): 9}, {("t", 0): 7, ("t", 1): 8}]) == {("t", 0): 5, ("t", 1): 8}
    assert slowest([{("t", 0): 5}, {}]) == {}
    assert slowest([]) == {}
    assert positions_of([{"o": {"t": {"0": 5}}}, {"o": {"t": {"0": 3}}}, {"o": "text"}], "o") == {("t", 0): 3}
    assert lag_records({("t", 0): 5}, {("t", 0): 4, ("t", 1): 3}) == 3


def test_lines_for_people():
    """Does every query have one line, in columns or alone?"""
    progress = Tracker("fleet", "alerts").take(report(rows=12345, latest=1010), now_ms=0)

    assert line(progress) == (
        "alerts: batch 1, 12,345 rows in all, 2 rows/s, 1,000 records (0.0 s) behind, batch 0.4 s, 8 state rows, 0 late"
    )
    assert table([progress]) == [
        "QUERY   BATCH    ROWS  ROWS/S    LAG  LAG-TIME  BATCH-TIME  STATE-ROWS  LATE",
        "alerts      1  12,345       2  1,000     0.0 s       0.4 s           8     0",
    ]
    assert table_of_documents([progress.document()]) == table([progress])
    assert table_of_documents([]) == []
    assert [seconds(ms) for ms in (0, 9999, 15_000, 180_000)] == ["0.0 s", "10.0 s", "15 s", "3 min"]
