"""One partition's next state: who is in sync, who is eligible, who leads, and the record that says so.

Everything that changes a partition comes through here, so that the rules hold whatever the reason was:

1. a reassignment whose new replicas are all in sync is complete; if it leaves fewer replicas, all of these must be;
2. while fewer are in sync than the topic wants, whoever leaves the ISR stays eligible (ELR, KIP-966), unless it lost
   its disk cache; when enough are in sync, nobody else is eligible;
3. the leader stays if it can; else the first replica that is in sync leads, else an eligible one if nobody is in
   sync, else the last known leader, else, if the topic allows it, any replica that lives; else nobody;
4. the leader epoch rises with each election, and when a replica is taken away; the partition epoch with any change.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from uuid import UUID

from msgspec import Struct

from headrace.cores.controller.placement import MIGRATING, default_directory
from headrace.cores.metadata import UNCHANGED_LEADER, Metadata, PartitionState
from headrace.model.metadata_records import NO_LEADER, PartitionChangeRecord

RECOVERED = 0
RECOVERING = 1
"""Whether a leader that was elected uncleanly still has to say that its log is in order (KIP-704)."""

UNCHANGED_RECOVERY = -1

Brokers = tuple[int, ...]


class Election(Enum):
    """How hard to look for a leader."""

    PREFERRED = "the first replica if it is in sync, else as ONLINE"
    ONLINE = "who leads now, else who is in sync or eligible"
    UNCLEAN = "as ONLINE, else whoever lives"


class Intent(Struct, frozen=True, kw_only=True):
    """What shall change in a partition; what is None stays."""

    isr: Brokers | None = None
    replicas: Brokers | None = None
    adding: Brokers | None = None
    removing: Brokers | None = None
    unclean_shutdown: int = -1
    """A replica that may have lost what it had acknowledged: neither in sync nor eligible."""
    recovery_state: int | None = None
    directory: tuple[int, UUID] | None = None
    """A replica, and the log dir it is in now."""
    election: Election = Election.ONLINE


class Draft:
    """A partition on its way from one state to the next."""

    __slots__ = ("adding", "elr", "is_unclean", "isr", "leader", "removing", "replicas")

    def __init__(self, state: PartitionState, intent: Intent) -> None:
        self.isr = state.isr if intent.isr is None else intent.isr
        self.replicas = state.replicas if intent.replicas is None else intent.replicas
        self.adding = state.adding_replicas if intent.adding is None else intent.adding
        self.removing = state.removing_replicas if intent.removing is None else intent.removing
        self.elr = without(state.elr, (intent.unclean_shutdown,)) if state.elr else ()
        self.leader = state.leader
        self.is_unclean = False

    def complete_reassignment(self) -> None:
        """End a reassignment if the replicas it added are in sync, and, where it leaves fewer, all that stay."""
        if not self.adding and not self.removing:
            return
        isr = without(self.isr, self.removing)
        replicas = without(self.replicas, self.removing)
        # One that was to be added and is to be removed since belongs to neither side.
        added, removed = without(self.adding, self.removing), without(self.removing, self.adding)
        awaited = replicas if len(added) < len(removed) else added
        if isr and set(awaited).issubset(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()

    def update_elr(self, state: PartitionState, *, min_isr: int, unclean_shutdown: int) -> None:
        """Whoever was in sync or eligible and is not in sync now is eligible, while too few are in sync."""
        if len(self.isr) >= min_isr:
            self.elr = ()
            return
        candidates = {*state.elr, *state.isr}.intersection(self.replicas).difference(self.isr)
        candidates.discard(unclean_shutdown)
        self.elr = tuple(sorted(candidates))

    def drop_elr(self, state: PartitionState) -> None:
        """Where eligible replicas are not kept, the ISR keeps who was in sync last: else no election could be clean.

        Those left from when they were kept stay while nobody is in sync.
        """
        self.isr = self.isr or state.isr
        self.elr = () if self.isr else self.elr

    def elect(self, state: PartitionState, election: Election, may_lead: Callable[[int], bool], has_elr: bool) -> None:
        """Find a leader, and take over what its election means for who is in sync."""
        leader = self._find_leader(state, election, may_lead, has_elr)
        if leader == state.leader and not self.is_unclean:
            return
        self.leader = leader
        if self.is_unclean:
            # Nobody else is known to have what this leader has, and what it lacks is lost.
            self.isr, self.elr = (leader,), ()
        elif leader in self.elr:
            self.isr, self.elr = (leader,), without(self.elr, (leader,))

    def _find_leader(
        self, state: PartitionState, election: Election, may_lead: Callable[[int], bool], has_elr: bool
    ) -> int:
        eligible = self.isr or self.elr
        first = self.replicas[0]
        if election is Election.PREFERRED and first in eligible and may_lead(first):
            return first
        if state.leader in eligible and may_lead(state.leader):
            return state.leader
        for replica in self.replicas:
            if replica in eligible and may_lead(replica):
                return replica
        leader = self._find_unclean_leader(state, election, may_lead, uses_last_known=has_elr and not eligible)
        self.is_unclean = leader != NO_LEADER
        return leader

    def _find_unclean_leader(
        self, state: PartitionState, election: Election, may_lead: Callable[[int], bool], *, uses_last_known: bool
    ) -> int:
        if uses_last_known and len(state.last_known_elr) == 1:
            last = state.last_known_elr[0]
            if last in self.replicas and may_lead(last):
                return last
        if election is Election.UNCLEAN:
            for replica in self.replicas:
                if may_lead(replica):
                    return replica
        return NO_LEADER


def partition_change(
    metadata: Metadata,
    topic_id: UUID,
    state: PartitionState,
    intent: Intent,
    *,
    min_isr: int,
    has_elr: bool,
    may_lead: Callable[[int], bool],
) -> PartitionChangeRecord | None:
    """The record that carries out an intent, or None if nothing changes."""
    draft = Draft(state, intent)
    draft.complete_reassignment()
    if has_elr:
        draft.update_elr(state, min_isr=min_isr, unclean_shutdown=intent.unclean_shutdown)
    draft.elect(state, intent.election, may_lead, has_elr)
    if not has_elr:
        draft.drop_elr(state)
    leader = _leader_change(state, draft)
    record = PartitionChangeRecord(
        partition_id=state.index,
        topic_id=topic_id,
        isr=_changed(state.isr, draft.isr),
        leader=leader,
        replicas=_changed(state.replicas, draft.replicas),
        removing_replicas=_changed(state.removing_replicas, draft.removing),
        adding_replicas=_changed(state.adding_replicas, draft.adding),
        leader_recovery_state=_recovery_change(state, intent, draft),
        directories=_directories_change(metadata, state, intent, draft.replicas),
        eligible_leader_replicas=_changed(state.elr, draft.elr),
        last_known_elr=_last_known_change(state, leader, has_elr=has_elr),
    )
    is_nothing = record == PartitionChangeRecord(partition_id=state.index, topic_id=topic_id)
    return None if is_nothing else record


def _changed(old: Brokers, new: Brokers) -> Brokers | None:
    return None if old == new else new


def _leader_change(state: PartitionState, draft: Draft) -> int:
    if draft.leader != state.leader:
        return draft.leader
    taken_away = draft.replicas is not state.replicas and not set(state.replicas).issubset(draft.replicas)
    # Setting the leader that is raises its epoch, so that the replica that is gone is refused from now on.
    return state.leader if taken_away else UNCHANGED_LEADER


def _recovery_change(state: PartitionState, intent: Intent, draft: Draft) -> int:
    wanted = RECOVERING if draft.is_unclean else intent.recovery_state
    return UNCHANGED_RECOVERY if wanted is None or wanted == state.leader_recovery_state else wanted


def _last_known_change(state: PartitionState, leader: int, *, has_elr: bool) -> Brokers | None:
    """Remember who led when the partition loses its leader, and forget it when it has one again."""
    if has_elr and leader == NO_LEADER and state.leader != NO_LEADER and not state.last_known_elr:
        return (state.leader,)
    return () if leader >= 0 and state.last_known_elr else None


def _directories_change(
    metadata: Metadata, state: PartitionState, intent: Intent, replicas: Brokers
) -> tuple[UUID, ...] | None:
    if intent.directory is None and (replicas is state.replicas or replicas == state.replicas):
        return None
    known = dict(zip(state.replicas, state.directories or (MIGRATING,) * len(state.replicas), strict=True))
    if intent.directory is not None:
        known.update((intent.directory,))
    directories = tuple(
        known[replica] if replica in known else default_directory(metadata.brokers.get(replica)) for replica in replicas
    )
    is_untold = not state.directories and set(directories) == {MIGRATING}
    return None if is_untold or directories == state.directories else directories


def without(brokers: Brokers, gone: Brokers) -> Brokers:
    """Brokers but for some of them, in their order."""
    return tuple(broker for broker in brokers if broker not in gone)
