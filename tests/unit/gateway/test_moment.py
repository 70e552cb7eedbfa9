"""Points in time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.gateway.moment import milliseconds, moment_of


@pytest.mark.parametrize("number", [0, 1, -5, 1_769_860_800_123])
def test_there_and_back(number):
    """Is a moment the same after both ways?"""
    assert milliseconds(moment_of(number)) == number


def test_zones():
    """Is a moment the same in every zone?"""
    east = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))

    assert milliseconds(east) == milliseconds(datetime(2026, 1, 31, 12, tzinfo=UTC))


@pytest.mark.parametrize("number", [-1, 2**62])
def test_no_moment(number):
    """Is a time that no calendar has no moment?"""
    assert moment_of(number) is None
