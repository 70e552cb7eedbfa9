"""What a file requires, as it is told to the data source: only what means the same there."""

import pytest
from pyspark.sql.types import StructType

from headrace.pipeline.good_records import good_when

SCHEMA = "name string, lat double, seq int, is_new boolean, ts timestamp, day date"


@pytest.mark.parametrize(
    ("require", "expected"),
    [
        (
            ["lat BETWEEN -90 AND 90"],
            ["and", ["is not null", "lat"], ["and", [">=", "lat", -90.0], ["<=", "lat", 90.0]]],
        ),
        (["NOT (seq > 3)"], ["and", ["is not null", "seq"], ["<=", "seq", 3]]),
        (["seq IN (1, 2)", "is_new"], ["and", ["or", ["=", "seq", 1], ["=", "seq", 2]], ["=", "is_new", True]]),
        (["name = 'a' OR name IS NULL"], ["or", ["=", "name", "a"], ["is null", "name"]]),
        (["length(name) = 4"], None),
        (["name = 'a'", "length(name) = 4"], None),
        (["seq <> 3"], None),
        (["day > '2026-11-18'"], None),
        (["true"], None),
    ],
)
def test_what_is_told(spark, require, expected):
    """Is what Spark can say as a filter told, and nothing where it cannot say all?"""
    assert _flat(expected) == _flat(good_when(spark, StructType.fromDDL(SCHEMA), require))


def test_moments(spark):
    """Are moments told in microseconds, to the last one?"""
    found = good_when(spark, StructType.fromDDL(SCHEMA), ["ts >= TIMESTAMP '1969-12-31 23:59:59.999999Z'"])

    assert [">=", "ts", -1] in _flat(found)


def _flat(condition):
    """The conditions that are joined by an `and`, in an order of their own and without those a comparison implies."""
    if condition is None:
        return None
    if condition[0] != "and":
        return [condition]
    return sorted((one for part in condition[1:] for one in _flat(part) if one[0] != "is not null"), key=str)
