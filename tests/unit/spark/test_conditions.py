"""Conditions that the source judges: which rows are left."""

import math

import pyarrow as pa
import pytest

from headrace.spark.conditions import read_condition, without, write_condition

ROWS = pa.RecordBatch.from_pydict(
    {
        "name": pa.array(["a", "b", None, ""]),
        "number": pa.array([1.0, -2.5, math.nan, None]),
        "at": pa.array([0, 1_000_000, None, -1], pa.timestamp("us", tz="UTC")),
    }
)


def left(condition):
    """The places of the rows that stay."""
    numbered = ROWS.append_column("place", pa.array(range(4)))
    return without(numbered, read_condition(write_condition(condition))).column("place").to_pylist()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (["=", "name", "a"], [1, 2, 3]),
        (["<", "number", 1.0], [0, 2, 3]),
        (["<=", "number", 1.0], [2, 3]),
        ([">", "number", -2.5], [1, 2, 3]),
        ([">=", "number", -2.5], [2, 3]),
        ([">", "at", 0], [0, 2, 3]),
        (["is null", "name"], [0, 1, 3]),
        (["is not null", "name"], [2]),
        (["and", ["is not null", "name"], [">=", "number", -9.0], ["<=", "at", 0]], [1, 2, 3]),
        (["or", ["is null", "name"], ["=", "name", ""]], [0, 1]),
    ],
)
def test_what_is_left(condition, expected):
    """Are just the rows left out of which the condition holds, and none with a null or no number in its comparison?"""
    assert expected == left(condition)
