"""A partition with its replicas, a controller, producers and consumers, in virtual time and bad conditions.

`World(seed).run()` is one schedule. Everything about it is drawn from the seed: how many replicas, whether the topic
flushes before it acknowledges, what goes wrong and when. The cores are the real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from headrace.cores.replication.messages import ReplicationSettings
from headrace.sim.network import Network
from headrace.sim.replication_broker import SimulatedBroker
from headrace.sim.replication_checker import Checker
from headrace.sim.replication_clients import SimulatedConsumer, SimulatedProducer
from headrace.sim.replication_controller import SimulatedController
from headrace.sim.replication_faults import Faults
from headrace.sim.scheduler import Scheduler
from headrace.sim.trace import Trace

if TYPE_CHECKING:
    from headrace.cores.replication.messages import AlterPartition

CONTROLLER = 0
FAULTS_MS = 3000
"""How long things go wrong."""
RECOVERY_MS_MAX = 15_000
"""How long everything may take to be well again, after."""
LAG_MS = 250


class InvariantBroken(AssertionError):
    """A run in which something happened that must not."""

    def __init__(self, world: World, invariant: str, what: str) -> None:
        self.seed = world.seed
        self.invariant = invariant
        again = f"World({world.seed}, replicas={len(world.brokers)}, flushes={world.settings.flushes})"
        super().__init__(f"seed {world.seed}: {invariant}: {what}\n{world.trace}again: {again}.run()")


class World:
    """Everything in one run."""

    def __init__(
        self,
        seed: int,
        *,
        replicas: int | None = None,
        flushes: bool | None = None,
        min_isr: int | None = None,
        faults: type[Faults] = Faults,
    ) -> None:
        """What is not given is drawn from the seed."""
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.trace = Trace()
        self.network = Network(self.scheduler, self._deliver)
        chance = self.scheduler.chance
        drawn = 3 if chance.random() < 0.8 else 5, chance.random() < 0.7, chance.choice((1, 2, 2, 3))
        count = drawn[0] if replicas is None else replicas
        self.settings = ReplicationSettings(
            flushes=drawn[1] if flushes is None else flushes,
            min_insync_replicas=drawn[2] if min_isr is None else min_isr,
            replica_lag_time_max_ms=LAG_MS,
        )
        ids = tuple(range(1, count + 1))
        self.controller = SimulatedController(
            ids, min_isr=self.settings.min_insync_replicas, say=self.say, publish=self._publish
        )
        self.racks = {broker_id: f"rack {broker_id % 3}" for broker_id in ids}
        self.brokers = {broker_id: SimulatedBroker(self, broker_id, self.racks[broker_id]) for broker_id in ids}
        self.checker = Checker(self._fail, self.controller, self.brokers, flushes=self.settings.flushes)
        self.records_per_fetch = chance.choice((1, 3, 6))
        """Few make it take long to catch up."""
        self.heartbeat_ms = chance.choice((30, 80))
        self.clients: dict[int, SimulatedProducer | SimulatedConsumer] = {}
        self._alter_at = dict.fromkeys(ids, 0)
        self._faults = faults(self)

    def run(self) -> str:
        """Run it all and answer the fingerprint; InvariantBroken if something happened that must not."""
        self._begin()
        self._faults.plan(FAULTS_MS)
        self.scheduler.run(FAULTS_MS, self.checker.check)
        self._faults.heal()
        self._finish()
        self.say(f"done: {len(self.checker.committed)} records, {self.scheduler.events} events")
        return self.trace.fingerprint

    def _begin(self) -> None:
        self.say(f"{len(self.brokers)} replicas, {self.settings}")
        for broker in self.brokers.values():
            broker.start()
            epoch = self.controller.register(broker.broker_id, broker.incarnation, -1, 0)
            assert epoch is not None
            broker.deliver(CONTROLLER, ("registered", broker.incarnation, epoch))
        self.controller.create()
        self.scheduler.after(0, self._watch_sessions)
        pace_ms = self.scheduler.chance.choice(((5, 30), (20, 80), (40, 300)))
        for client in (101, 102):
            self.clients[client] = SimulatedProducer(self, client, goal=60, pace_ms=pace_ms)
        self.clients[201] = SimulatedConsumer(self, 201, "")
        self.clients[202] = SimulatedConsumer(self, 202, "rack 2")

    def _finish(self) -> None:
        """Everything is well: all replicas must become equal, and whoever waits must be served."""
        producers = [client for client in self.clients.values() if isinstance(client, SimulatedProducer)]
        consumers = [client for client in self.clients.values() if isinstance(client, SimulatedConsumer)]
        for producer in producers:
            producer.hurry()
        missing = "everything"
        for _ in range(RECOVERY_MS_MAX // 100):
            self.scheduler.run(self.scheduler.now_ms + 100, self.checker.check)
            if not all(producer.is_done for producer in producers):
                missing = "acknowledgements"
            elif any(consumer.position < len(self.checker.committed) for consumer in consumers):
                missing = "a consumer's records"
            else:
                missing = self.checker.unfinished()
            if not missing:
                return
        self._fail("progress", f"still missing after {RECOVERY_MS_MAX} ms: {missing}")

    def say(self, line: str) -> None:
        """Take down what happens."""
        self.trace.add(self.scheduler.now_ms, line)

    def _fail(self, invariant: str, what: str) -> NoReturn:
        raise InvariantBroken(self, invariant, what)

    def guess_leader(self) -> int:
        """Who leads, as some broker or other sees it."""
        chance = self.scheduler.chance
        broker = self.brokers[chance.randint(1, len(self.brokers))]
        known = broker.partition
        return known.leader if known is not None and known.leader > 0 else chance.randint(1, len(self.brokers))

    # --- messages

    def _deliver(self, sender: int, receiver: int, message: tuple[Any, ...]) -> None:
        if receiver == CONTROLLER:
            self._ask_controller(sender, *message)
        elif receiver in self.brokers:
            self.brokers[receiver].deliver(sender, message)
        else:
            self.clients[receiver].deliver(sender, message)

    def _ask_controller(self, sender: int, kind: str, *arguments: Any) -> None:
        now_ms = self.scheduler.now_ms
        if kind == "register":
            incarnation, clean_epoch = arguments
            if incarnation != self.brokers[sender].incarnation:
                return
            epoch = self.controller.register(sender, incarnation, clean_epoch, now_ms)
            if epoch is not None:
                self.network.send(CONTROLLER, sender, ("registered", incarnation, epoch))
        else:
            epoch, applied, wants_shutdown = arguments
            self.controller.heartbeat(sender, epoch, applied=applied, wants_shutdown=wants_shutdown, now_ms=now_ms)
        self.network.send(CONTROLLER, sender, ("metadata", len(self.controller.log)))

    def to_controller(self, sender: int, message: tuple[Any, ...]) -> None:
        """Send an AlterPartition: lost where the link is cut, but never overtaken by a later one."""
        chance, weather = self.scheduler.chance, self.network.weather
        span = weather.slow_ms if chance.random() < weather.slow else weather.delay_ms
        at_ms = max(self._alter_at[sender], self.scheduler.now_ms + chance.randint(*span))
        self._alter_at[sender] = at_ms
        self.scheduler.at(at_ms, lambda: self._alter(sender, *message[1:]))

    def _alter(self, sender: int, number: int, broker_epoch: int, request: AlterPartition) -> None:
        if not self.network.is_cut(sender, CONTROLLER):
            answer = self.controller.alter(sender, broker_epoch, request)
            self.network.send(CONTROLLER, sender, ("altered", number, request, answer))

    def _publish(self) -> None:
        for broker_id in self.brokers:
            self.network.send(CONTROLLER, broker_id, ("metadata", len(self.controller.log)))

    def _watch_sessions(self) -> None:
        self.controller.fence_silent(self.scheduler.now_ms)
        self.scheduler.after(50, self._watch_sessions)
