"""What a run shows."""

import io
import json

from headrace.pipeline.display import JsonDisplay, LineDisplay, TerminalDisplay, display_for
from headrace.pipeline.progress import Tracker


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress(batch, now_ms, rows=5):
    return Tracker("fleet", "alerts").take({"batchId": batch, "numInputRows": rows}, now_ms=now_ms)


def test_the_display_fits_the_stream():
    """Is a terminal drawn on, a pipe written to, and JSON for those who ask for it?"""
    assert isinstance(display_for(Terminal(), io.StringIO(), is_json=False), TerminalDisplay)
    assert isinstance(display_for(io.StringIO(), io.StringIO(), is_json=False), LineDisplay)
    assert isinstance(display_for(Terminal(), io.StringIO(), is_json=True), JsonDisplay)


def test_the_table_is_drawn_in_place():
    """Does the table go back over itself, and a message above it?"""
    stream = Terminal()
    display = TerminalDisplay(stream)
    display.say("hello")
    assert stream.getvalue() == "\033[Khello\n"
    display.progress([], [progress(1, 0)])
    drawn = stream.getvalue()
    assert drawn.count("alerts") == 1
    display.progress([], [progress(2, 1000)])
    assert stream.getvalue().removeprefix(drawn).startswith("\r\033[2A\033[KQUERY")
    before = stream.getvalue()
    display.say("note")
    assert stream.getvalue().removeprefix(before).startswith("\r\033[2A\033[Knote\n\033[KQUERY")


def test_lines_are_few():
    """Is there a line for a query at first, then one per ten seconds, and a last one at the end?"""
    stream = io.StringIO()
    display = LineDisplay(stream)
    for batch, now_ms, rows in (
        (0, 0, 5),
        (1, 1000, 5),
        (2, 10_000, 5),
        (3, 30_000, 0),
        (4, 31_000, 5),
        (5, 32_000, 5),
    ):
        display.progress([progress(batch, now_ms, rows)], [])
    display.end({})

    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == [
        "alerts: batch 0",
        "alerts: batch 2",
        "alerts: batch 4",
        "alerts: batch 5",
    ]


def test_json_is_one_document_per_line():
    """Is everything a program reads JSON, and rows for people elsewhere?"""
    stream, rows = io.StringIO(), io.StringIO()
    display = JsonDisplay(stream, rows)
    display.say("hello")
    display.show("a row")
    display.progress([progress(1, 0), progress(2, 1)], [])
    display.end({"state": "finished"})
    documents = [json.loads(line) for line in stream.getvalue().splitlines()]

    assert [one["event"] for one in documents] == ["message", "progress", "progress", "end"]
    assert (documents[1]["query"], documents[1]["rows"], rows.getvalue()) == ("alerts", 5, "a row\n")
