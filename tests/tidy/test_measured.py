"""What the page of benchmarks says was measured, held against what was promised; no test measures time itself."""

import re

import pytest


@pytest.fixture
def measured(repository):
    """Headrace's own figures on the page, by the name of the measure."""
    text = (repository.root / "docs" / "reference" / "benchmarks.md").read_text()
    rows = [line.strip("| \n").split("|") for line in text.splitlines() if line.startswith("| ") and ":" in line]
    return {row[0].strip(): _number(row[2]) for row in rows if len(row) > 3 and _number(row[2]) is not None}


def _number(cell: str) -> float | None:
    found = re.fullmatch(r"[\d,.]+", cell.strip())
    return float(found[0].replace(",", "")) if found else None


def test_a_million_records_a_second(measured):
    """Does one broker take over a million records in a second, and bring one to its reader within 10 ms (R7)?"""
    assert measured["produce 100 B, 128 KiB batches: records/s"] > 1_000_000
    assert measured["latency at 1,000/s: end p99 ms"] < 10


def test_the_peer_is_on_the_page(measured):
    """Is every kind of load on the page, and none of its figures missing?"""
    kinds = {name.split(":")[0].split(",")[0] for name in measured}

    assert {"footprint", "produce 100 B", "produce 1 KiB", "fetch", "fetch tail", "latency at 1"} <= kinds
