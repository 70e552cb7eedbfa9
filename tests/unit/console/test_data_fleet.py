"""How much of the log is read for the trails of the map."""

import pytest

from headrace.console.data_fleet import BACK_LEAST_MS, BACK_MOST_MS, back_ms


@pytest.mark.parametrize(
    ("recent", "expected"),
    [(0, BACK_MOST_MS), (600, BACK_MOST_MS), (2_000, 600_000), (9_000, 133_333), (1_000_000, BACK_LEAST_MS)],
)
def test_trails_are_as_long_as_can_be_read(recent, expected):
    """Is it twenty minutes for a small fleet, less for a large one, and never nothing?"""
    assert expected == back_ms(recent)
