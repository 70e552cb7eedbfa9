"""What may happen to a quorum: each run draws which kinds of trouble it has, and then when and where."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.cores.raft import inputs as given
from headrace.cores.raft.messages import AddVoterRequest, DescribeQuorumRequest, RemoveVoterRequest
from headrace.sim.network import Weather
from headrace.sim.quorum_node import Asked, QuorumNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.quorum import QuorumWorld

GAP_MS = (20, 200)
"""The time between two troubles."""
NOT_ON_THE_NETWORK = -1


class QuorumFaults:
    """The trouble of one run."""

    def __init__(self, world: QuorumWorld) -> None:
        self.world = world
        self.chance = world.scheduler.chance
        kinds: list[Callable[[], None]] = [
            self.crash_one,
            self.crash_between_outputs,
            self.crash_all,
            self.stop_one,
            self.cut_one_way,
            self.part,
            self.heal,
            self.change_weather,
            self.pause,
            self.jump_clock,
            self.resign,
            self.snapshot,
            self.clean,
            self.change_voters,
            self.change_voters,
            self.slow_flushes,
            self.describe,
        ]
        # A run with a few kinds of trouble digs deeper than one with all of them.
        self._kinds = [kind for kind in kinds if self.chance.random() < 0.5] or kinds

    def schedule(self, until_ms: int) -> None:
        """Have trouble until a time."""
        at_ms = self.chance.randint(*GAP_MS)
        while at_ms < until_ms:
            self.world.scheduler.at(at_ms, self.chance.choice(self._kinds))
            at_ms += self.chance.randint(*GAP_MS)

    def schedule_usurpers(self, until_ms: int) -> None:
        """Have leaders replaced behind their backs until a time."""
        for at_ms in range(GAP_MS[1], until_ms, GAP_MS[1]):
            self.world.scheduler.at(at_ms + self.chance.randint(0, 100), self.usurp)

    def usurp(self) -> None:
        """A leader hears nothing of the elections of the others, whose patience ends now, amid what it sends them."""
        world = self.world
        for leader in world.leaders():
            world.deaf.add(leader.id)
            world.propose(leader)
            world.scheduler.after(self.chance.randint(100, 400), lambda leader=leader: world.deaf.discard(leader.id))  # type: ignore[misc]
            for node in world.nodes:
                if node is not leader:
                    world.scheduler.after(self.chance.randint(1, 15), lambda node=node: self._lose_patience(node))  # type: ignore[misc]

    def _lose_patience(self, node: QuorumNode) -> None:
        node.clock_ms += node.config.fetch_timeout_ms
        node.give(given.Tick())

    def _any(self) -> QuorumNode:
        return self.chance.choice(self.world.nodes)

    def _leader_or_any(self) -> QuorumNode:
        """A leader twice out of three times, since there things go wrong."""
        leaders = self.world.leaders()
        return self.chance.choice(leaders) if leaders and self.chance.random() < 0.66 else self._any()

    def crash_one(self) -> None:
        """A node dies and comes back."""
        node = self._leader_or_any()
        if node.raft is not None:
            node.crash()
            self.world.restart_later(node)

    def crash_between_outputs(self) -> None:
        """A node dies in the middle of a step."""
        self._leader_or_any().dies_after = self.chance.randint(0, 12)

    def crash_all(self) -> None:
        """The power fails."""
        for node in self.world.nodes:
            if node.raft is not None:
                node.crash()
                self.world.restart_later(node)

    def stop_one(self) -> None:
        """A node shuts down in good order."""
        self._leader_or_any().give(given.Shutdown(self.chance.randint(0, 300)))

    def cut_one_way(self) -> None:
        """Nothing gets from one node to another."""
        self.world.network.cut(self._leader_or_any().id, self._any().id)

    def part(self) -> None:
        """The network falls apart."""
        ids = [node.id for node in self.world.nodes]
        self.chance.shuffle(ids)
        middle = self.chance.randint(1, max(len(ids) - 1, 1))
        self.world.network.part(ids[:middle], ids[middle:])

    def heal(self) -> None:
        """All cuts are mended."""
        self.world.network.heal()

    def change_weather(self) -> None:
        """The network gets better or worse."""
        self.world.network.weather = Weather(
            delay_ms=(1, self.chance.choice((3, 10, 60))),
            loss=self.chance.choice((0.0, 0.02, 0.2)),
            repeats=self.chance.choice((0.0, 0.02, 0.2)),
            slow=self.chance.choice((0.0, 0.05)),
            slow_ms=(100, 1500),
        )

    def pause(self) -> None:
        """A node stands still and does not know it."""
        node = self._leader_or_any()
        node.paused_until = self.world.scheduler.now_ms + self.chance.randint(20, 600)

    def jump_clock(self) -> None:
        """A node's clock jumps ahead."""
        node = self._any()
        node.clock_ms += self.chance.randint(1, 2_000)
        node.give(given.Tick())

    def resign(self) -> None:
        """A controller gives up."""
        node = self._leader_or_any()
        if node.raft is not None:
            node.give(given.Resign(node.raft.epoch))

    def snapshot(self) -> None:
        """A state machine writes a snapshot."""
        node = self._any()
        if node.paused_until <= self.world.scheduler.now_ms:
            node.write_snapshot()

    def clean(self) -> None:
        """A log is cleaned up to its newest snapshot."""
        node = self._leader_or_any()
        if node.paused_until <= self.world.scheduler.now_ms:
            node.write_snapshot()
            node.clean()

    def slow_flushes(self) -> None:
        """The disks get slower or faster."""
        self.world.flush_ms = self.chance.choice(((0, 2), (1, 10), (1, 100)))

    def change_voters(self) -> None:
        """Somebody wants one voter more or less, and sometimes somebody else at the same time."""
        for _ in range(self.chance.randint(1, 2)):
            leader, other = self._leader_or_any(), self._any()
            if leader.raft is None:
                return
            asked = Asked(NOT_ON_THE_NETWORK, 0, 0, None)
            request: AddVoterRequest | RemoveVoterRequest = RemoveVoterRequest(voter=other.key)
            if not leader.raft.replica.log.voters.last.has(other.key):
                endpoints = other.config.endpoints
                request = AddVoterRequest(voter=other.key, endpoints=endpoints, timeout_ms=500)
            leader.give(given.Received(asked, request))

    def describe(self) -> None:
        """Somebody asks how far everybody is."""
        asked = Asked(NOT_ON_THE_NETWORK, 0, 0, None)
        self._leader_or_any().give(given.Received(asked, DescribeQuorumRequest()))


def directory(node_id: int) -> UUID:
    """The directory of a simulated node."""
    return UUID(int=0x1000 + node_id)
