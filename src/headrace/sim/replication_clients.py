"""Producers and consumers in the simulation of replication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.replication.read_replica import THE_LEADER
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.sim.replication import World

IN_FLIGHT_MAX = 3
PRODUCE_TIMEOUT_MS = 300


class SimulatedProducer:
    """An idempotent producer with acks=all: it sends each record until it is acknowledged, to whoever leads."""

    def __init__(self, world: World, client_id: int, *, goal: int, pace_ms: tuple[int, int]) -> None:
        self._world = world
        self._chance = world.scheduler.chance
        self._client_id = client_id
        self._pace_ms = pace_ms
        self._guess = 1
        self._number = 0
        self._unacknowledged: dict[int, int] = {}
        self._next = 0
        self.goal = goal
        world.scheduler.after(self._chance.randint(*pace_ms), self._produce)

    @property
    def is_done(self) -> bool:
        """Whether everything it wanted to write is acknowledged."""
        return self._next >= self.goal and not self._unacknowledged

    def hurry(self) -> None:
        """Write little more than what is begun."""
        self.goal = min(self.goal, self._next + 2)

    def _produce(self) -> None:
        if self._next < self.goal:
            if len(self._unacknowledged) < IN_FLIGHT_MAX:
                self._send(self._next)
                self._next += 1
            self._world.scheduler.after(self._chance.randint(*self._pace_ms), self._produce)

    def _send(self, sequence: int) -> None:
        self._number += 1
        number = self._unacknowledged[sequence] = self._number
        self._world.network.send(self._client_id, self._guess, ("produce", number, sequence))
        self._world.scheduler.after(PRODUCE_TIMEOUT_MS, lambda: self._timed_out(number, sequence))

    def _timed_out(self, number: int, sequence: int) -> None:
        if self._unacknowledged.get(sequence) == number:
            self._guess = self._world.guess_leader()
            self._send(sequence)

    def deliver(self, sender: int, message: tuple[Any, ...]) -> None:
        """A broker answered."""
        _, number, sequence, error, _ = message
        if self._unacknowledged.get(sequence) != number:
            return
        if error is ErrorCode.NONE:
            del self._unacknowledged[sequence]
            return
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._guess = self._world.guess_leader()
        self._number += 1
        retry = self._unacknowledged[sequence] = self._number
        self._world.scheduler.after(self._chance.randint(15, 60), lambda: self._timed_out(retry, sequence))


class SimulatedConsumer:
    """Reads everything from the beginning, from the leader or from a replica in its rack."""

    def __init__(self, world: World, client_id: int, rack: str) -> None:
        self._world = world
        self._chance = world.scheduler.chance
        self._client_id = client_id
        self._rack = rack
        self._number = 0
        self._preferred = THE_LEADER
        self.position = 0
        self._poll()

    def _poll(self) -> None:
        self._number += 1
        target = self._preferred if self._preferred != THE_LEADER else self._world.guess_leader()
        if self._chance.random() < 0.1:
            self._preferred = THE_LEADER
        self._world.network.send(self._client_id, target, ("consume", self._number, self.position, self._rack))
        self._world.scheduler.after(self._chance.randint(25, 60), self._poll)

    def deliver(self, sender: int, message: tuple[Any, ...]) -> None:
        """A broker answered; perhaps to a question of long ago."""
        number, offset, records, preferred, start_offset = message[1:]
        self._world.checker.consumed(sender, offset, records)
        if number != self._number or offset != self.position:
            return
        self.position = max(self.position, start_offset)
        self.position += len(records)
        if preferred != THE_LEADER:
            self._preferred = preferred
