"""Lines over time as SVG."""

from xml.etree import ElementTree as ET

import pytest

from headrace.console.chart import line_chart, nice_top


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


def test_nothing():
    """Is there a chart with its axes where there are no points yet?"""
    root = ET.fromstring(line_chart([], words=str, title="", span_s=20, now=100))

    assert not [one for one in root.iter() if one.attrib.get("class") == "hr-line"]
