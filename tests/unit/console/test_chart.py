"""Lines over time as SVG."""

from datetime import timedelta
from xml.etree import ElementTree as ET

import pytest

from headrace.console import chart
from headrace.console.chart import line_chart, nice_top
from headrace.console.words import count, duration, rate


@pytest.mark.parametrize(("highest", "top"), [(0, 1), (0.3, 0.5), (1, 1), (3, 5), (51, 100), (1999, 2000)])
def test_nice_top(highest, top):
    """Is the scale's end a round number that everything fits under?"""
    assert nice_top(highest) == pytest.approx(top)


def test_line():
    """Does the line go through the points, within the time that is shown?"""
    points = [(0.0, 99.0), (90.0, 0.0), (100.0, 5.0)]
    root = ET.fromstring(line_chart(points, words="{:.0f}".format, title="a < b", span_s=20, now=100))

    assert root.attrib["aria-label"] == "a < b"
    (line,) = [one for one in root.iter() if one.attrib.get("class") == "hr-line"]
    assert line.attrib["points"] == "500.0,100.0 1000.0,0.0"


@pytest.mark.parametrize(
    ("highest", "words", "labels"),
    [
        (1, count, ["1", "", "0"]),
        (0.02, duration, ["", "", "0 s"]),
        (0.1, duration, ["0.1 s", "", "0 s"]),
        (2, count, ["2", "1", "0"]),
        (100, rate, ["100/s", "50/s", "0/s"]),
        (5, rate, ["5/s", "2.5/s", "0/s"]),
    ],
)
def test_labels_differ(highest, words, labels):
    """Is what rounding makes the same said once, zero always, and no zero behind a point?"""
    root = ET.fromstring(line_chart([(99, 0), (100, highest)], words=words, title="", span_s=20, now=100))

    (beside,) = [one for one in root.iter() if one.attrib.get("class") == "hr-chart-values"]
    assert labels == [one.text or "" for one in beside]


@pytest.mark.parametrize(
    ("first", "times"),
    [
        (0, ["0:00:00", "0:30:00", "1:00:00"]),
        (2400, ["0:40:00", "0:50:00", "1:00:00"]),
        (3500, ["0:55:00", "0:57:30", "1:00:00"]),
        (None, ["0:00:00", "0:30:00", "1:00:00"]),
    ],
)
def test_begins_with_the_first_point(first, times, monkeypatch):
    """Does a chart of little time fill its width, as long as that is not too little?"""
    monkeypatch.setattr(chart, "_clock", lambda at, *, seconds=False: str(timedelta(seconds=at)))
    points = [] if first is None else [(float(first), 1.0), (3600.0, 1.0)]
    root = ET.fromstring(line_chart(points, words=str, title="", span_s=3600, now=3600))

    (below,) = [one for one in root.iter() if one.attrib.get("class") == "hr-chart-times"]
    assert times == [one.text for one in below]


def test_nothing():
    """Is there a chart with its axes where there are no points yet?"""
    root = ET.fromstring(line_chart([], words=str, title="", span_s=20, now=100))

    assert not [one for one in root.iter() if one.attrib.get("class") == "hr-line"]
