"""Which records are wanted, as a URL says it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console.record_query import LIMIT_MAX, STARTS, RecordQuery, iso

QUERIES = st.builds(
    RecordQuery,
    topic=st.just("t"),
    start=st.sampled_from(sorted(STARTS)),
    partition=st.none() | st.integers(0, 1000),
    offset=st.integers(0, 10**15),
    time_ms=st.none() | st.integers(0, 4_000_000_000_000),
    limit=st.integers(1, LIMIT_MAX),
    filter=st.text(max_size=20),
)


@given(QUERIES)
def test_url_reproduces_the_view(query):
    """Does the URL of a view ask for the same view?"""
    url = {name: value for name, value in query.to_url().items() if value is not None}
    again = RecordQuery.from_url("t", url)

    assert again.to_url() == query.to_url()


@pytest.mark.parametrize(
    ("url", "field", "value"),
    [
        ({"from": "nowhere"}, "start", "last"),
        ({"partition": "-1"}, "partition", None),
        ({"partition": "x"}, "partition", None),
        ({"limit": "0"}, "limit", 100),
        ({"limit": "99999999"}, "limit", LIMIT_MAX),
        ({"offset": "9" * 30}, "offset", 0),
        ({"time": "yesterday"}, "time_ms", None),
        ({"time": "2026-01-31T12:00:00"}, "time_ms", 1769860800000),
        ({"time": "1769860800000"}, "time_ms", 1769860800000),
    ],
)
def test_what_makes_no_sense(url, field, value):
    """Is nonsense in a URL as if it were not there, and a time read in the ways people write it?"""
    assert getattr(RecordQuery.from_url("t", url), field) == value


def test_iso():
    """Is a time written in UTC, with milliseconds?"""
    assert iso(1769860800123) == "2026-01-31T12:00:00.123Z"
