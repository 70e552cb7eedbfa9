"""Do the checks of the random clusters find a controller that is wrong?"""

from collections import deque

import pytest
from msgspec.structs import replace

from headrace.cores import metadata as metadata_core
from headrace.cores.controller import partition_change, partition_changes, snapshot
from headrace.cores.controller.partition_change import Draft, Election
from headrace.cores.controller.partition_changes import PartitionChanges
from headrace.cores.partition_index import PartitionIndex
from random_cluster import check_cluster

CLUSTERS = 20
"""Each bug shows within so many."""


def elects_who_leaves(monkeypatch):
    """A broker that is fenced goes on leading."""
    real = PartitionChanges.__init__

    def begin(self, *rest, leaving=-1, **named):
        real(self, *rest, **named)

    monkeypatch.setattr(PartitionChanges, "__init__", begin)


def keeps_isr_in_elr(monkeypatch):
    """Who is in sync is listed as eligible too."""

    def update_elr(self, state, *, min_isr, unclean_shutdown):
        self.elr = (
            tuple(sorted({*state.elr, *state.isr}.intersection(self.replicas))) if len(self.isr) < min_isr else ()
        )

    monkeypatch.setattr(Draft, "update_elr", update_elr)


def keeps_removed_in_isr(monkeypatch):
    """A completed reassignment leaves the old replicas in the ISR."""

    def complete(self):
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if self.removing and replicas and set(replicas) <= set(self.isr):
            self.replicas, self.adding, self.removing = replicas, (), ()

    monkeypatch.setattr(Draft, "complete_reassignment", complete)


def elects_uncleanly_in_silence(monkeypatch):
    """An unclean leader does not have to recover."""
    monkeypatch.setattr(partition_change, "RECOVERING", 0)


def forgets_moves_in_snapshots(monkeypatch):
    """A snapshot does not say which replicas are being added."""
    real = snapshot.partition_record
    monkeypatch.setattr(snapshot, "partition_record", lambda *args: replace(real(*args), adding_replicas=()))


def leaves_the_index_behind(monkeypatch):
    """The index is not told of replicas that go."""
    real = PartitionIndex._move
    monkeypatch.setattr(PartitionIndex, "_move", lambda self, key, before, after: real(self, key, (), after))


def keeps_leader_epochs(monkeypatch):
    """Another leader has the same epoch."""
    real = metadata_core.merged

    def merged(old, change):
        return replace(real(old, change), leader_epoch=old.leader_epoch)

    monkeypatch.setattr(metadata_core, "merged", merged)
    monkeypatch.setattr(partition_changes, "merged", merged)


def ignores_lost_dirs(monkeypatch):
    """A leader in a log dir that failed goes on leading."""
    monkeypatch.setattr(partition_changes, "is_online", lambda broker, directory: True)


def elects_outside_the_isr(monkeypatch):
    """Any live replica is as good as one in sync."""
    real = Draft._find_leader

    def find(self, state, election, may_lead, has_elr):
        leader = real(self, state, election, may_lead, has_elr)
        return leader if leader >= 0 else next(filter(may_lead, self.replicas), -1)

    monkeypatch.setattr(Draft, "_find_leader", find)


def does_not_elect_who_returns(monkeypatch):
    """Leaderless partitions stay so when their replica is back."""
    monkeypatch.setattr(PartitionChanges, "election", lambda self, topic: Election.ONLINE)
    real = PartitionChanges.__init__

    def begin(self, *rest, returning=-1, **named):
        real(self, *rest, **named)

    monkeypatch.setattr(PartitionChanges, "__init__", begin)


@pytest.mark.parametrize(
    "plant",
    [
        elects_who_leaves,
        keeps_isr_in_elr,
        keeps_removed_in_isr,
        elects_uncleanly_in_silence,
        forgets_moves_in_snapshots,
        leaves_the_index_behind,
        keeps_leader_epochs,
        ignores_lost_dirs,
        elects_outside_the_isr,
        does_not_elect_who_returns,
    ],
    ids=lambda plant: plant.__name__,
)
def test_planted_bugs_are_found(plant, monkeypatch):
    """Would these checks notice a controller that is wrong, within a few clusters?"""
    plant(monkeypatch)

    with pytest.raises(AssertionError, match="seed"):
        deque(map(check_cluster, range(CLUSTERS)), maxlen=0)
