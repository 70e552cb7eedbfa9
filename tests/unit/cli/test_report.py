"""Results for people and for programs."""

import json

from headrace.cli.report import Report, table, to_yaml

DOCUMENT = {"name": "ü: x", "rows": [{"a": 1, "b": None}, []], "none": {}}


def test_text_is_for_people(capsys):
    """Does the text form show lines and no data?"""
    report = Report("text")
    report.line("hello")
    report.data(DOCUMENT)
    assert capsys.readouterr().out == "hello\n"


def test_json_is_for_programs(capsys):
    """Does the JSON form show the data alone on standard output, and remarks on the other?"""
    report = Report("json")
    report.line("hello")
    report.note("by the way")
    report.data(DOCUMENT)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == DOCUMENT
    assert shown.err == "by the way\n"


def test_yaml_nests():
    """Is nested data written with its indentation, empty parts included?"""
    assert to_yaml(DOCUMENT) == ('"name": "ü: x"\n"rows":\n  -\n    "a": 1\n    "b": null\n  - []\n"none": {}\n')


def test_columns_are_padded_as_kafka_pads_them():
    """Is every column as wide as its widest cell, and at least as wide as asked?"""
    assert table([["GROUP", "X"], ["a-long-group", "1"]], [6, 3]) == ["GROUP        X  ", "a-long-group 1  "]
