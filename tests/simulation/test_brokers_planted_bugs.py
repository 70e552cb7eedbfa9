"""The simulation of whole brokers finds what it is there to find: mistakes planted one at a time."""

import pytest

from headrace.broker.partition import Partition
from headrace.cores.replication import leader
from headrace.sim.brokers import BrokersWorld
from headrace.sim.quorum_invariants import Violation
from headrace.storage.flush_job import FlushJob


def acknowledge_alone(patch):
    """A leader acknowledges what only it has flushed."""
    patch.setattr(leader, "safe_offset", lambda own_offset, followers: own_offset)


def never_part(patch):
    """A leader does not tell followers where their logs part from its own."""
    fetched = Partition.fetched

    def agreeing(partition, replica_id, broker_epoch, asked):
        fetched(partition, replica_id, broker_epoch, asked)

    patch.setattr(Partition, "fetched", agreeing)


def flush_nothing(patch):
    """A flush reaches no disk."""
    patch.setattr(FlushJob, "run", lambda job: None)


PLANTED = {
    "acknowledge alone": (acknowledge_alone, {"acknowledged", "no promise is broken"}, range(20)),
    "never part": (never_part, {"replicas are equal", "all becomes well"}, range(18, 40)),
    "flush nothing": (flush_nothing, {"acknowledged", "no promise is broken", "a disk can be read again"}, range(20)),
}
"""What is planted, what it may break, and within which seeds it must be found."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name, monkeypatch):
    """Does a known mistake break what it should, within the seeds given?"""
    bug, invariants, seeds = PLANTED[name]
    bug(monkeypatch)
    found = set()
    for seed in seeds:
        try:
            BrokersWorld(seed).run()
        except Violation as fault:
            found.add(fault.invariant)
            if fault.invariant in invariants:
                break

    assert found & invariants, f"{name}: found {found or 'nothing'} within {len(seeds)} seeds"
