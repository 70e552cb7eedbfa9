"""The measured control plane."""

import pytest
from bench.control_plane import measure_control_plane


def test_small_cluster_can_be_measured():
    """Does the life of a cluster that is measured come to its end, and has every number been taken?"""
    numbers = measure_control_plane(brokers=6, partitions=600)

    assert 606 == numbers["create records"]
    assert 100 == numbers["failover partitions led"]
    assert 301 == numbers["failover records"]
    assert 300 == numbers["rejoin ISR partitions"]
    assert "take over ms" in numbers
    assert all(value >= 0 for name, value in numbers.items() if name.endswith(" ms"))


@pytest.mark.slow
def test_large_cluster():
    """R6: Do 300 brokers with 102,000 partitions lose a broker, have it back, and fit into a snapshot?

    Each step asserts that everything has a leader, that a broker that is back leads what it led, and that the snapshot
    is the state.
    """
    numbers = measure_control_plane(brokers=300, partitions=102_000)

    assert 102_000 + 1_020 == numbers["create records"]
    # A broker's share is a 300th, 340; where topics begin is drawn, so it is not the same for all.
    assert 250 < numbers["failover partitions led"] < 450
    assert 850 < numbers["rejoin ISR partitions"] < 1_200
