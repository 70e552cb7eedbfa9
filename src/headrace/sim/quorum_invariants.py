"""What must hold in a quorum after every event, whatever happens to its members.

election safety      an epoch has one leader, and has it once
one vote             a voter votes once in an epoch, and has written it down before it says so
log matching         records of the same offset and epoch are the same, and so are those before them
leader completeness  a leader has every record that was committed in earlier epochs
majority             what a leader commits is flushed by a majority of its voters
own epoch            and a majority has said so in the leader's own epoch: who has gone on to a later one is not counted
committed            a committed record is never another, on any node, and never truncated
monotonic            no node's epoch or high watermark falls while it runs, nor its epoch over a restart
snapshots            a snapshot is not above the high watermark, and a log that starts late starts at one
replay               the state is that of replaying the committed records
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.voters import ReplicaKey, VoterSet
from headrace.sim.quorum_disk import Entry, QuorumDisk

if TYPE_CHECKING:
    from collections.abc import Mapping


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


def _violated(invariant: str, what: str) -> NoReturn:
    raise Violation(invariant, what)


def next_state(state: int, entry: Entry) -> int:
    """What a record makes of the state of a state machine that remembers everything."""
    return hash((state, entry.epoch, entry.value))


class QuorumInvariants:
    """What has been seen of a whole quorum, by somebody who sees everything."""

    def __init__(self) -> None:
        self.committed: list[Entry] = []
        self.states = [0]
        """The state after so many committed records."""
        self._committed_in: list[int] = []
        """The epoch of the leader that committed a record."""
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], ReplicaKey] = {}
        self._records: dict[tuple[int, int], tuple[int, int]] = {}
        """By offset and epoch: the value, and the epoch of the record before."""
        self._epochs: dict[int, int] = {}
        self._vouched: dict[tuple[int, int], int] = {}
        """By node and epoch: how much a node has said to have flushed."""

    def on_fetch(self, node: int, epoch: int, offset: int) -> None:
        """A node has said in an epoch that it has flushed all below an offset."""
        self._vouched[node, epoch] = max(offset, self._vouched.get((node, epoch), 0))

    def on_epoch(self, node: int, epoch: int) -> None:
        """A node has acted in an epoch."""
        if epoch < self._epochs.get(node, 0):
            _violated("monotonic", f"epoch of {node} fell from {self._epochs[node]} to {epoch}")
        self._epochs[node] = epoch

    def on_vote(self, node: int, epoch: int, candidate: ReplicaKey, disk: QuorumDisk) -> None:
        """A voter has said that a candidate has its vote."""
        if self._votes.setdefault((node, epoch), candidate) != candidate:
            _violated("one vote", f"{node} voted for {self._votes[node, epoch].id} and {candidate.id} in epoch {epoch}")
        if (disk.state.epoch, disk.state.voted) != (epoch, candidate):
            _violated("one vote", f"{node} has not written down its vote in epoch {epoch}")

    def on_leader(self, node: int, epoch: int, disk: QuorumDisk) -> None:
        """A node has become leader."""
        if epoch in self._leaders:
            _violated("election safety", f"epoch {epoch} is led by {self._leaders[epoch]} and by {node}")
        self._leaders[epoch] = node
        last = len(self.committed) - 1
        while last >= 0 and self._committed_in[last] >= epoch:
            last -= 1  # A node that stood still may become leader of an epoch that is over.
        if disk.end <= last or (last >= disk.start and disk.entry(last) != self.committed[last]):
            _violated("leader completeness", f"{node} leads epoch {epoch} without committed record {last}")

    def on_append(self, disk: QuorumDisk, base_offset: int, entries: list[Entry]) -> None:
        """A node has appended records, which are at the end of its log now."""
        if base_offset + len(entries) != disk.end:
            _violated("log matching", f"records appended at {disk.end - len(entries)} instead of {base_offset}")
        index = base_offset - disk.start
        if index:
            before = disk.entries[index - 1].epoch
        else:
            before = next((one.epoch for one in disk.snapshots if one.offset == base_offset), 0)
        for offset, entry in enumerate(entries, base_offset):
            known = self._records.setdefault((offset, entry.epoch), (entry.value, before))
            if known != (entry.value, before):
                _violated("log matching", f"record {offset} of epoch {entry.epoch} is {entry.value} and {known[0]}")
            before = entry.epoch

    def on_truncate(self, node: int, offset: int, disk: QuorumDisk) -> None:
        """A node is about to truncate its log."""
        if offset < len(self.committed) and offset < disk.end and disk.entry(offset) == self.committed[offset]:
            _violated("committed", f"{node} truncates to {offset}, where it has a committed record")

    def on_commit(self, node: int, epoch: int, offset: int, applied: int, disk: QuorumDisk) -> None:
        """A node has learnt that all below an offset is committed."""
        if not applied <= offset <= disk.end:
            _violated("monotonic", f"high watermark of {node} went from {applied} to {offset}, its log to {disk.end}")
        committed = self.committed
        for at in range(applied, offset):
            entry = disk.entry(at)
            if at == len(committed):
                committed.append(entry)
                self._committed_in.append(epoch)
                self.states.append(next_state(self.states[-1], entry))
            elif committed[at] != entry:
                _violated("committed", f"{node} has {entry.value} at {at}, committed is {committed[at].value}")

    def on_leader_commit(
        self, node: int, leads: int, offset: int, voters: VoterSet, disks: Mapping[int, QuorumDisk]
    ) -> None:
        """The leader of an epoch has moved its high watermark."""
        told = [one for one in voters.by_id if one == node or self._vouched.get((one, leads), -1) >= offset]
        if len(told) < voters.majority:
            _violated("own epoch", f"{node} committed to {offset}, though in epoch {leads} only {told} had it")
        epoch = disks[node].entry(offset - 1).epoch if offset > disks[node].start else -1
        safe = [voter for voter in voters.by_id if disks[voter].has_flushed(offset, epoch)]
        if len(safe) < voters.majority:
            _violated("majority", f"{node} committed to {offset}, flushed by {safe} of {[*voters.by_id]}")

    def on_state(self, node: int, offset: int, state: int) -> None:
        """A node's state machine has come to an offset."""
        if offset >= len(self.states) or self.states[offset] != state:
            _violated("replay", f"the state of {node} at {offset} is not that of the committed records")

    def on_snapshot(self, node: int, snapshot_id: OffsetAndEpoch, high_watermark: int, disk: QuorumDisk) -> None:
        """A node has written a snapshot, or raised the start of its log to one."""
        if snapshot_id.offset > high_watermark or snapshot_id.offset < disk.start:
            _violated("snapshots", f"{node} has {snapshot_id}, its log starts at {disk.start}")
        if disk.start and not any(one.offset == disk.start for one in disk.snapshots):
            _violated("snapshots", f"the log of {node} starts at {disk.start}, where it has no snapshot")
