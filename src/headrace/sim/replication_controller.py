"""A controller for the simulation of replication: it never fails, but brokers hear of its decisions late.

It decides as Kafka's does: registrations with broker epochs, fencing by heartbeats, ISR changes with partition epochs,
elections from the ISR, then from the replicas that left it last (ELR, KIP-966), and where neither has anyone left, of
the last leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.replication.messages import NO_LEADER, AlterAnswer, AlterPartition
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION_MS = 400


class SimulatedPartition(Struct, frozen=True, kw_only=True):
    """The partition as the controller has it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_leader: int = NO_LEADER


class SimulatedRegistration(Struct, frozen=True, kw_only=True):
    """A broker as the controller has it."""

    broker_epoch: int
    incarnation: int
    fenced: bool = True
    in_controlled_shutdown: bool = False


class Update(Struct, frozen=True):
    """One entry of the metadata log."""

    partition: SimulatedPartition | None
    broker_id: int = -1
    registration: SimulatedRegistration | None = None


class SimulatedController:
    """Brokers, one partition, and the log of all decisions."""

    def __init__(
        self, replicas: tuple[int, ...], *, min_isr: int, say: Callable[[str], None], publish: Callable[[], None]
    ) -> None:
        self._min_isr = min(min_isr, len(replicas))
        self._say = say
        self._publish = publish
        self._heard_ms: dict[int, int] = {}
        self.brokers: dict[int, SimulatedRegistration] = {}
        self.partition = SimulatedPartition(replicas=replicas, isr=())
        self.log: list[Update] = []

    # --- brokers

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker may lead."""
        registration = self.brokers.get(broker_id)
        return registration is not None and not registration.fenced and not registration.in_controlled_shutdown

    def register(self, broker_id: int, incarnation: int, previous_epoch: int, now_ms: int) -> int | None:
        """Register a start of a broker and answer its epoch; None while the one before may still live."""
        known = self.brokers.get(broker_id)
        if known is not None and known.incarnation == incarnation:
            return known.broker_epoch
        if known is not None and not known.fenced:
            return None
        self._heard_ms[broker_id] = now_ms
        if known is not None and previous_epoch != known.broker_epoch:
            # Before the registration in the log: who has seen that has seen this.
            self._say(f"controller: {broker_id} was not shut down cleanly")
            isr = tuple(replica for replica in self.partition.isr if replica != broker_id)
            self._change(isr, unclean=broker_id)
        epoch = len(self.log) + 1
        self._register(broker_id, SimulatedRegistration(broker_epoch=epoch, incarnation=incarnation))
        return epoch

    def create(self) -> None:
        """Let the partition begin, all replicas in sync; its brokers are registered."""
        for broker_id, registration in list(self.brokers.items()):
            self._register(broker_id, replace(registration, fenced=False))
        leader = self.partition.replicas[0]
        self._commit(replace(self.partition, isr=self.partition.replicas, leader=leader))

    def heartbeat(self, broker_id: int, epoch: int, *, applied: int, wants_shutdown: bool, now_ms: int) -> None:
        """A broker lives."""
        registration = self.brokers.get(broker_id)
        if registration is None or registration.broker_epoch != epoch:
            return
        self._heard_ms[broker_id] = now_ms
        if wants_shutdown:
            if not registration.in_controlled_shutdown:
                self._register(broker_id, replace(registration, in_controlled_shutdown=True))
                self._leave(broker_id)
        elif registration.fenced and applied >= epoch:
            self._register(broker_id, replace(registration, fenced=False))
            if self.partition.leader == NO_LEADER:
                self._change(self.partition.isr)

    def fence_silent(self, now_ms: int) -> None:
        """Fence brokers that were not heard of for too long."""
        for broker_id, registration in list(self.brokers.items()):
            if not registration.fenced and now_ms - self._heard_ms[broker_id] > SESSION_MS:
                self._register(broker_id, replace(registration, fenced=True))
                self._leave(broker_id)

    # --- the partition

    def elect(self, broker_id: int) -> None:
        """Let an in-sync replica lead, as a preferred-leader election does; who leads already begins a new epoch."""
        if broker_id in self.partition.isr and self.is_active(broker_id):
            self._commit(replace(self.partition, leader=broker_id), is_election=True)

    def alter(self, broker_id: int, broker_epoch: int, request: AlterPartition) -> AlterAnswer:
        """Commit the ISR a leader wants, or say why not."""
        error = self._alter_fault(broker_id, broker_epoch, request)
        if error is not ErrorCode.NONE:
            self._say(f"controller: {broker_id} may not have isr {request.isr}: {error.name}")
            return AlterAnswer(error=error)
        self._change(request.broker_ids)
        partition = self.partition
        return AlterAnswer(
            leader_epoch=partition.leader_epoch, partition_epoch=partition.partition_epoch, isr=partition.isr
        )

    def _alter_fault(self, broker_id: int, broker_epoch: int, request: AlterPartition) -> ErrorCode:
        partition = self.partition
        registration = self.brokers.get(broker_id)
        if registration is None or registration.broker_epoch != broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker_id != partition.leader:
            return ErrorCode.INVALID_REQUEST
        if request.partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not set(request.broker_ids) <= set(partition.replicas) or broker_id not in request.broker_ids:
            return ErrorCode.INVALID_REQUEST
        if not all(self.is_eligible(replica, epoch) for replica, epoch in request.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    def is_eligible(self, replica: int, epoch: int) -> bool:
        """Whether a replica may be in the ISR: active, and the start of it that its leader counted (KIP-903)."""
        return self.is_active(replica) and epoch in {-1, self.brokers[replica].broker_epoch}

    def _leave(self, broker_id: int) -> None:
        self._change(tuple(replica for replica in self.partition.isr if replica != broker_id))

    def _change(self, isr: tuple[int, ...], *, unclean: int = NO_LEADER) -> None:
        """Take a new ISR, keep those who had everything in the ELR, and elect if the leader cannot lead on."""
        old = self.partition
        elr: tuple[int, ...] = ()
        if len(isr) < self._min_isr:
            had_all = {*old.elr, *old.isr} - {*isr, unclean}
            elr = tuple(replica for replica in old.replicas if replica in had_all)
        leader = self.choose_leader(old, isr, elr, unclean)
        last_known = NO_LEADER if leader != NO_LEADER else old.last_known_leader
        if leader == NO_LEADER and not isr and old.isr:
            last_known = old.leader
        if leader != NO_LEADER and leader not in isr:
            isr = (leader,)
            elr = tuple(replica for replica in elr if replica != leader)
        new = replace(old, isr=isr, elr=elr, leader=leader, last_known_leader=last_known)
        if new != old:
            self._commit(new)

    def choose_leader(self, old: SimulatedPartition, isr: tuple[int, ...], elr: tuple[int, ...], unclean: int) -> int:
        """The leader as it is, else the first replica of the ISR, else of the ELR, else who led last of all."""
        candidates = isr or elr or tuple({old.last_known_leader} - {NO_LEADER})
        able = [replica for replica in old.replicas if replica in candidates and self.is_active(replica)]
        if old.leader in able and old.leader != unclean:
            return old.leader
        return able[0] if able else NO_LEADER

    def _commit(self, new: SimulatedPartition, *, is_election: bool = False) -> None:
        is_election = is_election or new.leader != self.partition.leader
        self.partition = replace(
            new,
            leader_epoch=self.partition.leader_epoch + is_election,
            partition_epoch=self.partition.partition_epoch + 1,
        )
        self._say(f"controller: {_spell(self.partition)}")
        self.log.append(Update(self.partition))
        self._publish()

    def _register(self, broker_id: int, registration: SimulatedRegistration) -> None:
        self.brokers[broker_id] = registration
        self._say(f"controller: broker {broker_id} {_spell_broker(registration)}")
        self.log.append(Update(None, broker_id, registration))
        self._publish()


def _spell(partition: SimulatedPartition) -> str:
    return (
        f"leader {partition.leader} epoch {partition.leader_epoch} v{partition.partition_epoch} isr {partition.isr}"
        f" elr {partition.elr} last {partition.last_known_leader}"
    )


def _spell_broker(registration: SimulatedRegistration) -> str:
    words = [f"epoch {registration.broker_epoch}"]
    words += ["fenced"] * registration.fenced + ["shutting down"] * registration.in_controlled_shutdown
    return " ".join(words)
