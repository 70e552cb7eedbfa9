"""Which feature levels belong to which release."""

import pytest

from headrace.cli.feature_levels import default_levels, metadata_level, release, release_of, shown_level
from headrace.cli.session import Failure


@pytest.mark.parametrize(
    ("typed", "expected"), [("3.3", "3.3-IV3"), ("3.5", "3.5-IV2"), ("4.0", "4.0-IV3"), ("4.1-IV0", "4.1-IV0")]
)
def test_a_release_without_its_step_is_the_last_one(typed, expected):
    """Does `4.0` mean the last metadata version of 4.0?"""
    assert release(typed) == expected


@pytest.mark.parametrize("typed", ["4.4", "9", "", "4"])
def test_unknown_releases_are_refused(typed):
    """Is a release that Kafka 4.3.1 does not know as finished refused with the list of those it knows?"""
    with pytest.raises(Failure, match=r"Supported metadata\.version are: 3\.3-IV3, 3\.4-IV0"):
        release(typed)


def test_levels_are_kafkas():
    """Are these the levels Kafka's own tool prints?"""
    assert 30 == metadata_level("4.3-IV0")
    assert ("3.9-IV0", None, None) == (release_of(21), release_of(6), release_of(99))
    assert {"transaction.version": 0, "group.version": 0, "kraft.version": 1}.items() <= default_levels(
        "3.9-IV0"
    ).items()
    assert {"transaction.version": 2, "group.version": 1, "streams.version": 1}.items() <= default_levels(
        "4.2-IV1"
    ).items()
    assert ("4.3-IV0", "UNKNOWN 99", "2") == (
        shown_level("metadata.version", 30),
        shown_level("metadata.version", 99),
        shown_level("transaction.version", 2),
    )
