"""Durations in doubling buckets."""

from hypothesis import given
from hypothesis import strategies as some

from headrace.model.exposition import Family, render
from headrace.model.histogram import BUCKETS, Histogram
from prometheus_text import Metrics

MS = 1_000_000


def rendered(histogram: Histogram) -> Metrics:
    """The histogram as a scraper sees it, in milliseconds."""
    samples = histogram.samples({"request": "x"}, unit_ns=MS)
    return Metrics("".join(render([Family("took_ms", "histogram", "How long.", samples)])))


def test_buckets():
    """Does each duration count in every bucket that is not smaller, and in the sum?"""
    histogram = Histogram()
    for elapsed_ms in (0, 0.9, 3, 10**9):
        histogram.note(int(elapsed_ms * MS))

    read = rendered(histogram)
    assert [read.get("took_ms_bucket", request="x", le=le) for le in ("0.0625", "1", "4", "131072", "+Inf")] == [
        1, 2, 3, 3, 4,
    ]  # fmt: skip
    assert read.get("took_ms_sum", request="x") == 1_000_000_003.9
    assert len([name for name, _ in read.values if name == "took_ms_bucket"]) == BUCKETS + 1


@given(some.lists(some.integers(min_value=0, max_value=2**62)))
def test_nothing_is_lost(durations):
    """Whatever the durations, is each counted once, under a bound that it is below?"""
    histogram = Histogram()
    for elapsed_ns in durations:
        histogram.note(elapsed_ns)

    read = rendered(histogram)
    assert read.get("took_ms_count", request="x") == len(durations)
    for bound in ("0.0625", "1", "1024"):
        below = sum(elapsed < float(bound) * MS for elapsed in durations)
        assert read.get("took_ms_bucket", request="x", le=bound) == below


def test_told_in_pieces():
    """Do the parts of a histogram agree, though it counts on while a scraper is told of it piece by piece?"""
    histogram = Histogram()
    text = []
    for sample in histogram.samples({}, unit_ns=MS):
        text.append("".join(render([Family("took_ms", "histogram", "How long.", [sample])])).splitlines()[-1])
        histogram.note(MS)

    read = Metrics("\n".join(["# TYPE took_ms histogram", *text, ""]))
    assert read.get("took_ms_count") == 0
