"""Dates and timestamps in texts, against Python's own."""

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.spark.moments import read_moments

MOMENT, LOCAL, DAY = pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.date32()


def read(text, data_type=MOMENT):
    """What one text stands for; None if it is nothing."""
    array, faults = read_moments(pa.array([text], pa.string()), data_type)
    return None if len(faults) else array[0].as_py()


@settings(max_examples=150, deadline=None)
@given(
    st.datetimes(),
    st.sampled_from(["T", " "]),
    st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
    st.none() | st.integers(-17 * 60, 17 * 60),
)
def test_any_timestamp(moment, separator, precision, zone):
    """Is every timestamp that Python writes read as Python reads it?"""
    if zone is not None:
        moment = moment.replace(tzinfo=timezone(timedelta(minutes=zone)))
    text = moment.isoformat(separator, precision)
    expected = datetime.fromisoformat(text)
    elapsed = (expected.replace(tzinfo=expected.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )

    array, faults = read_moments(pa.array([text]), MOMENT)

    assert not len(faults)
    assert [elapsed] == array.cast(pa.int64()).to_pylist()


@settings(max_examples=150, deadline=None)
@given(st.dates())
def test_any_date(day):
    """Is every date read, as a date and as the moment it begins?"""
    assert day == read(day.isoformat(), DAY)
    assert datetime(day.year, day.month, day.day, tzinfo=UTC) == read(day.isoformat())


@settings(max_examples=150, deadline=None)
@given(st.text("0123456789-:T Z+.", max_size=30) | st.text(max_size=12))
def test_any_text(text):
    """Whatever the text: is it nothing, or what Python takes it for too?"""
    found = read(text)
    if found is not None:
        cut = text.replace("Z", "+00:00")
        assert found == datetime.fromisoformat(cut).replace(tzinfo=datetime.fromisoformat(cut).tzinfo or UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29T12:00:00.1Z", datetime(2024, 2, 29, 12, 0, 0, 100_000, UTC)),
        ("2024-02-29T12:00:00.1234567899Z", datetime(2024, 2, 29, 12, 0, 0, 123_456, UTC)),
        ("2024-02-29T12:00+0130", datetime(2024, 2, 29, 10, 30, tzinfo=UTC)),
        ("2024-02-29T12:00-02", datetime(2024, 2, 29, 14, 0, tzinfo=UTC)),
    ],
)
def test_special_timestamps(text, expected):
    """Are fractions of any length and all forms of zones read?"""
    assert expected == read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "2024-02",
        "2023-02-29",
        "1900-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-01-32",
        "0000-01-01",
        "2024-02-29T",
        "2024-02-29T24:00",
        "2024-02-29T12",
        "2024-02-29T12:60",
        "2024-02-29T12:00:60",
        "2024-02-29T12:00:00.",
        "2024-02-29T12:00:00x",
        "2024-02-29T12:00:00+",
        "2024-02-29T12:00:00+19:00",
        "2024-02-29T12:00:00+1",
        "2024-02-29T12:00:00Zx",
        "2024-02-29x12:00",
        "2024/02/29",
        "24-02-29",
        "２０２４-02-29",
    ],
)
def test_no_timestamps(text):
    """Is what only looks like a timestamp none?"""
    assert read(text) is None


def test_local_timestamps_have_no_zone():
    """Is a text with a zone no local timestamp?"""
    assert read("2024-02-29T12:00:00Z", LOCAL) is None
    assert datetime(2024, 2, 29, 12) == read("2024-02-29T12:00:00", LOCAL)  # noqa: DTZ001


def test_nulls_and_slices():
    """Are nulls null, and slices of arrays read from where they begin?"""
    array = pa.array(["x", "2024-01-01", None, "2024-01-02", "y"])[1:4]

    found, faults = read_moments(array, DAY)

    assert not len(faults)
    assert [date(2024, 1, 1), None, date(2024, 1, 2)] == found.to_pylist()
