"""The settings of a cluster by its size."""

import pytest

from headrace.settings.cluster_size import replication_settings, voters_among


@pytest.mark.parametrize(
    ("nodes", "voters"),
    [([1], [1]), ([1, 2], [1]), ([1, 2, 3], [1, 2, 3]), ([7, 8, 9, 10, 11], [7, 8, 9])],
)
def test_voters(nodes, voters):
    """Is the number of voters odd, so that each of them is worth its vote?"""
    assert voters_among(nodes) == voters


@pytest.mark.parametrize(("brokers", "copies", "needed"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (9, "3", "2")])
def test_copies(brokers, copies, needed):
    """Can one broker be away, wherever there are several, without a topic that refuses to be written?"""
    settings = replication_settings(brokers)

    assert {value for name, value in settings.items() if "replication.factor" in name} == {copies}
    assert {value for name, value in settings.items() if "min" in name} == {needed}
