"""A whole quorum in virtual time: some voters and observers, a bad network, disks that lose what was not flushed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.cores.raft import inputs as given
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from headrace.cores.raft.raft import Raft
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.sim.network import CALM, Network
from headrace.sim.quorum_disk import QuorumDisk
from headrace.sim.quorum_faults import QuorumFaults, directory
from headrace.sim.quorum_invariants import QuorumInvariants, Violation
from headrace.sim.quorum_node import QuorumNode
from headrace.sim.scheduler import Scheduler
from headrace.sim.trace import Trace

TROUBLE_MS = 2_500
"""How long there is trouble."""
RECOVERY_MS = 15_000
"""How long a quorum may take to recover when the trouble is over."""
LOOK_EVERY_MS = 50
ELECTION_NEWS = (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest)
SIZES = ((1, 0), (1, 1), (3, 0), (3, 0), (3, 0), (3, 1), (3, 2), (5, 0), (5, 1))
"""How many voters and observers a run may have."""


class QuorumWorld:
    """One run; a function of its seed."""

    def __init__(
        self,
        seed: int,
        make_raft: Callable[..., Raft] = Raft,
        *,
        nerves: float | None = None,
        fetch_records_max: int | None = None,
        usurpers: bool = False,
    ) -> None:
        """What is not given is drawn; with usurpers, leaders are often replaced behind their backs."""
        self._repeat = (
            f"QuorumWorld({seed}, nerves={nerves}, fetch_records_max={fetch_records_max}, usurpers={usurpers})"
        )
        self._usurpers = usurpers
        self.deaf: set[int] = set()
        """Nodes that hear nothing of elections."""
        self.make_raft = make_raft
        self.scheduler = Scheduler(seed)
        self.trace = Trace()
        self.invariants = QuorumInvariants()
        self.network = Network(self.scheduler, self._deliver)
        self.flush_ms = (1, 5)
        self.healthy = False
        chance = self.scheduler.chance
        self.nerves = chance.choice((0.0, 0.0, 0.1, 0.4, 0.8))
        """How likely something happens to a node just after it voted, truncated, became leader, or committed."""
        self.restart_ms = chance.choice(((1, 10), (1, 100), (10, 500)))
        self.fetch_records_max = chance.choice((1, 3, 10))
        if nerves is not None:
            self.nerves = nerves
        if fetch_records_max is not None:
            self.fetch_records_max = fetch_records_max
        voters, observers = chance.choice(SIZES)
        self.nodes = self._make_nodes(voters, observers)
        self.disks = {node.id: node.disk for node in self.nodes}
        self._value = 0

    def _make_nodes(self, voters: int, observers: int) -> list[QuorumNode]:
        dynamic = self.scheduler.chance.random() < 0.6
        election_timeout_ms = self.scheduler.chance.choice((20, 100))
        count = voters + observers
        keys = [ReplicaKey(node_id, directory(node_id)) for node_id in range(count)]
        endpoints = [(Endpoint("CONTROLLER", f"node{node_id}", 9093),) for node_id in range(count)]
        if dynamic:
            # Some nodes have moved since the formatting, and will say so.
            moved = (Endpoint("CONTROLLER", "before", 9093),)
            places = [place if self.scheduler.chance.random() < 0.8 else moved for place in endpoints]
            chosen = VoterSet(Voter(keys[index], places[index]) for index in range(voters))
        else:
            chosen = VoterSet(Voter(ReplicaKey(index), endpoints[index]) for index in range(voters))
        nodes = []
        for node_id in range(count):
            config = QuorumConfig(
                cluster_id="simulated",
                endpoints=endpoints[node_id],
                bootstrap_servers=count if dynamic else 0,
                election_timeout_ms=election_timeout_ms,
                fetch_timeout_ms=200,
                election_backoff_max_ms=100,
                request_timeout_ms=150,
                retry_backoff_ms=10,
                fetch_wait_max_ms=60,
            )
            formatted = chosen if dynamic and node_id < voters else None
            disk = QuorumDisk(None if dynamic else chosen, formatted)
            nodes.append(QuorumNode(self, keys[node_id], disk, config))
        return nodes

    def trace_line(self, line: str) -> None:
        """Take down something that happened."""
        self.trace.add(self.scheduler.now_ms, line)

    def leaders(self) -> list[QuorumNode]:
        """The nodes that believe they lead."""
        return [node for node in self.nodes if node.raft is not None and node.raft.is_leader]

    def _deliver(self, sender: int, receiver: int, message: tuple[Any, ...]) -> None:
        body = message[3]
        if receiver in self.deaf and isinstance(body, ELECTION_NEWS):
            return
        self.trace_line(f"{sender}>{receiver} {type(body).__name__} {getattr(body, 'epoch', '')}")
        self.nodes[receiver].receive(sender, message)

    # The run

    def run(self) -> str:
        """Trouble, then recovery; gives the fingerprint, raises a Violation that says how to repeat it."""
        try:
            self._run()
        except AssertionError as fault:
            # The core's own assertions are invariants too.
            invariant = fault.invariant if isinstance(fault, Violation) else "assertion"
            raise Violation(invariant, f"{fault}\nto repeat: {self._repeat}.run()\n{self.trace}") from fault
        return self.trace.fingerprint

    def _run(self) -> None:
        for node in self.nodes:
            node.start()
        faults = QuorumFaults(self)
        faults.schedule(TROUBLE_MS)
        if self._usurpers:
            faults.schedule_usurpers(TROUBLE_MS)
        self._propose_often()
        self.scheduler.run(TROUBLE_MS)
        self._heal()
        self._recover()

    def _propose_often(self) -> None:
        """Clients append at whoever believes to lead, as long as there is trouble."""
        for node in self.leaders():
            self.propose(node)
        if self.scheduler.now_ms < TROUBLE_MS:
            self.scheduler.after(self.scheduler.chance.randint(5, 60), self._propose_often)

    def propose(self, node: QuorumNode) -> None:
        """Append some records at a leader."""
        assert node.raft is not None
        values = list(range(self._value + 1, self._value + 1 + self.scheduler.chance.randint(1, 4)))
        self._value = values[-1]
        node.give(given.Propose(None, node.raft.epoch, len(values), values))

    def restart_later(self, node: QuorumNode) -> None:
        """Bring a dead node back after a while, or when the trouble is over."""
        life = node.life

        def restart() -> None:
            if node.raft is None and node.life == life:
                node.start()

        delay_ms = 1 if self.healthy else self.scheduler.chance.randint(*self.restart_ms)
        self.scheduler.after(delay_ms, restart)

    def unnerve(self, node: QuorumNode) -> None:
        """Something important has just happened at a node: a good moment for it to die or to be cut off."""
        chance = self.scheduler.chance
        if self.healthy or chance.random() >= self.nerves:
            return
        if chance.random() < 0.6:
            node.dies_after = chance.randint(1, 12)
            return
        for other in self.nodes:
            if chance.random() < 0.6:
                self.network.cut(node.id, other.id)
            if chance.random() < 0.3:
                self.network.cut(other.id, node.id)
        self.scheduler.after(chance.randint(20, 400), self.network.heal)

    def _heal(self) -> None:
        self.trace_line("the trouble is over")
        self.healthy = True
        self.deaf.clear()
        self.network.heal()
        self.network.weather = CALM
        self.flush_ms = (1, 5)
        for node in self.nodes:
            node.dies_after = None
            node.paused_until = 0

    # Recovery

    def _recover(self) -> None:
        """Everybody must follow one leader, and get a record that is appended now."""
        deadline_ms = self.scheduler.now_ms + RECOVERY_MS
        for _ in range(2):
            while not self._is_whole():
                if self.scheduler.now_ms >= deadline_ms:
                    raise Violation("liveness", self._plight())
                self.scheduler.run(self.scheduler.now_ms + LOOK_EVERY_MS)
            for node in self.leaders():
                self.propose(node)

    def _is_whole(self) -> bool:
        """Whether one leads, and all have all of it, committed."""
        leaders = self.leaders()
        if len(leaders) != 1 or any(node.raft is None for node in self.nodes):
            return False
        end = leaders[0].disk.end
        return all(node.applied == node.disk.end == end for node in self.nodes)

    def _plight(self) -> str:
        return "; ".join(
            f"{node.id}: {type(node.raft.replica.role).__name__ if node.raft else 'dead'}"
            f" {node.raft.epoch if node.raft else ''} log {node.disk.start}-{node.disk.end} applied {node.applied}"
            for node in self.nodes
        )
