"""What goes wrong in a simulated run of replication: drawn from the seed, undone at the end.

What is promised where the topic does not flush before it acknowledges is less (KIP-966): at most
`min.insync.replicas` - 1 brokers are stopped uncleanly at a time, where that lasts until the controller has registered
the broker's next start; and one that could be elected (ISR or ELR) is not. More is not done to such a topic. Where it
flushes, anything goes, all power at once too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.sim.network import Weather

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.replication import World
    from headrace.sim.replication_broker import SimulatedBroker


class Faults:
    """Draws faults and brings them about."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._chance = world.scheduler.chance
        kinds: list[tuple[int, Callable[[], None]]] = [
            (5, self._kill),
            (5, self._cut_power),
            (2, self._cut_all_power),
            (3, self._kill_leader),
            (3, self._restart_cleanly),
            (4, self._cut_one_way),
            (4, self._part),
            (3, self._pause),
            (2, self._jump_clock),
            (3, self._slow_metadata),
            (3, self._slow_disk),
            (4, self._delete_records),
            (5, self._elect),
            (3, self._elect_often),
            (3, self._change_weather),
        ]
        self._kinds = [kind for weight, kind in kinds for _ in range(weight)]

    def plan(self, until_ms: int) -> None:
        """Schedule the faults of a run: of few kinds or of many, since some bugs need the same one again and again."""
        chance = self._chance
        if chance.random() < 0.7:
            self._change_weather()
        kinds = chance.sample(self._kinds, chance.choice((3, 5, 10, len(self._kinds))))
        for _ in range(chance.randint(3, 12)):
            self._scheduler.after(chance.randint(100, until_ms), chance.choice(kinds))

    def heal(self) -> None:
        """Make everything good again."""
        world = self._world
        world.network.heal()
        world.network.weather = Weather()
        world.say("all is well again")
        for broker in world.brokers.values():
            broker.metadata_delay_ms = 0
            broker.flush_ms = (1, 6)
            broker.resume()
            if not broker.is_up:
                broker.start()

    # --- brokers

    def _some_broker(self) -> SimulatedBroker:
        return self._world.brokers[self._chance.choice(sorted(self._world.brokers))]

    def _may_stop(self, broker: SimulatedBroker) -> bool:
        """Whether a broker may stop uncleanly, by what is promised."""
        world = self._world
        if world.settings.flushes:
            return True
        partition = world.controller.partition
        sound = {other.broker_id for other in world.brokers.values() if self._is_sound(other)} - {broker.broker_id}
        unsound_max = min(world.settings.min_insync_replicas, len(partition.replicas)) - 1
        return len(world.brokers) - len(sound) <= unsound_max and not sound.isdisjoint((*partition.isr, *partition.elr))

    def _is_sound(self, broker: SimulatedBroker) -> bool:
        """Whether the controller would still trust it: up and registered, or cleanly shut down."""
        registration = self._world.controller.brokers.get(broker.broker_id)
        if registration is None:
            return False
        if broker.is_up and registration.incarnation == broker.incarnation:
            return True
        return broker.clean_epoch == registration.broker_epoch

    def _crash(self, broker: SimulatedBroker, *, loses_page_cache: bool) -> None:
        if broker.is_up and self._may_stop(broker):
            broker.crash(loses_page_cache=loses_page_cache)
            self._start_later(broker)

    def _start_later(self, broker: SimulatedBroker) -> None:
        def start() -> None:
            if not broker.is_up:
                broker.start()

        self._scheduler.after(self._chance.randint(20, 1200), start)

    def _kill(self) -> None:
        self._crash(self._some_broker(), loses_page_cache=False)

    def _cut_power(self) -> None:
        self._crash(self._some_broker(), loses_page_cache=True)

    def _cut_all_power(self) -> None:
        for broker in self._world.brokers.values():
            self._crash(broker, loses_page_cache=True)

    def _kill_leader(self) -> None:
        leader = self._world.controller.partition.leader
        if leader in self._world.brokers:
            self._crash(self._world.brokers[leader], loses_page_cache=self._chance.random() < 0.5)

    def _restart_cleanly(self) -> None:
        broker = self._some_broker()
        broker.shut_down()
        self._scheduler.after(600, lambda: self._start_later(broker))

    def _pause(self) -> None:
        broker = self._some_broker()
        if broker.is_up:
            self._world.say(f"{broker.broker_id} stands still")
            broker.pause()
            self._scheduler.after(self._chance.randint(50, 1200), broker.resume)

    def _jump_clock(self) -> None:
        self._some_broker().clock_skew_ms += self._chance.randint(-2000, 2000)

    def _slow_metadata(self) -> None:
        broker = self._some_broker()
        broker.metadata_delay_ms = self._chance.randint(50, 800)
        self._scheduler.after(self._chance.randint(200, 1500), lambda: setattr(broker, "metadata_delay_ms", 0))

    def _slow_disk(self) -> None:
        broker = self._some_broker()
        broker.flush_ms = (50, 400)
        self._scheduler.after(self._chance.randint(200, 1500), lambda: setattr(broker, "flush_ms", (1, 6)))

    def _delete_records(self) -> None:
        for broker in self._world.brokers.values():
            broker.delete_records()

    # --- elections

    def _elect(self) -> None:
        self._world.controller.elect(self._some_broker().broker_id)

    def _elect_often(self) -> None:
        for _ in range(4):
            self._scheduler.after(self._chance.randint(0, 60), self._elect)

    # --- the network

    def _change_weather(self) -> None:
        chance = self._chance
        self._world.network.weather = Weather(
            delay_ms=(1, chance.choice((3, 10, 40))),
            loss=chance.choice((0.0, 0.02, 0.1)),
            repeats=chance.choice((0.0, 0.05, 0.2)),
            slow=chance.choice((0.0, 0.02, 0.1)),
            slow_ms=(100, 1500),
        )

    def _cut_one_way(self) -> None:
        nodes = (0, *self._world.brokers)
        one, other = self._chance.sample(nodes, 2)
        self._world.say(f"nothing goes from {one} to {other}")
        self._world.network.cut(one, other)
        self._heal_later()

    def _part(self) -> None:
        nodes = (0, *self._world.brokers)
        some = self._chance.sample(nodes, self._chance.randint(1, len(nodes) - 1))
        others = [node for node in nodes if node not in some]
        self._world.say(f"nothing goes between {sorted(some)} and {others}")
        self._world.network.part(some, others)
        self._heal_later()

    def _heal_later(self) -> None:
        self._scheduler.after(self._chance.randint(100, 1200), self._world.network.heal)
