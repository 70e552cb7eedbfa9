"""The measurement of streams: what is chosen, the table, and a tiny form on real processes."""

import pytest
from bench import __main__, streams
from bench.streams import WORKLOADS, Workload, measure

from headrace.testing.cluster import Cluster

NUMBERS = {"p99 ms": 20.0, "lost": 0.0}


def test_streams_have_a_program_of_their_own(monkeypatch):
    """Does `headrace bench streams` lead there, with the rest of its arguments?"""
    told = []
    monkeypatch.setattr(streams, "main", lambda arguments: told.append(arguments) or 0)

    assert 0 == __main__.main(["streams", "--seconds", "3"])
    assert [["--seconds", "3"]] == told


def test_what_was_not_reached_is_said():
    """Is a workload that was late, or lost something, named below the table?"""
    first, second, third, *_ = WORKLOADS
    table = streams._table([(first, NUMBERS), (second, NUMBERS | {"p99 ms": 150.0}), (third, NUMBERS | {"lost": 2.0})])

    assert f"| {first.name} | 20 | 0 | yes |" in table
    assert f"- {second.name} (the target): p99 150 ms, 0 not delivered" in table
    assert f"- {third.name} (beyond the target): p99 20 ms, 2 not delivered" in table
    assert "Not reached" not in streams._table([(first, NUMBERS)])


@pytest.mark.slow
@pytest.mark.clients
def test_a_tiny_form(monkeypatch):
    """Does a measurement on real processes find every delivery, and a clock that runs?"""
    monkeypatch.setattr(streams, "CLIENTS", 5)
    work = Workload(name="tiny", records_per_s=50, query="key=t-{n}", deliveries_per_record=1, deaf=1)
    with Cluster() as cluster:
        numbers = measure(cluster.bootstrap, work, 1.0)

    assert 0 == numbers["lost"]
    assert numbers["p99 ms"] >= numbers["p50 ms"] > 0
    assert numbers["RSS MiB"] > 0
