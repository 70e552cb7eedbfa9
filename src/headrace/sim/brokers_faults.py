"""What goes wrong in a simulated run of whole brokers: drawn from the seed, undone at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.brokers import BrokersWorld
    from headrace.sim.brokers_machine import Machine

_SKEW_MAX_MS = 3_600_000


class Faults:
    """Draws faults and brings them about."""

    def __init__(self, world: BrokersWorld) -> None:
        self._world = world
        self._loop = world.loop
        self._chance = world.loop.chance
        kinds: list[tuple[int, Callable[[], None]]] = [
            (3, self._kill),
            (4, self._cut_power),
            (3, self._cut_power_amid_work),
            (1, self._cut_all_power),
            (3, self._restart_cleanly),
            (3, self._pause),
            (4, self._cut_one_way),
            (3, self._isolate),
            (2, self._change_weather),
            (1, self._jump_clock),
        ]
        self._kinds = [kind for weight, kind in kinds for _ in range(weight)]

    def plan(self, until_s: float) -> None:
        """Schedule the faults of a run: of few kinds or of many, since some bugs need the same one again and again."""
        chance = self._chance
        kinds = chance.sample(self._kinds, chance.choice((2, 5, len(self._kinds))))
        for _ in range(chance.randint(3, 9)):
            self._later(chance.random() * until_s, chance.choice(kinds))

    def heal(self) -> None:
        """Make everything good again."""
        world = self._world
        world.network.break_chance = 0.0
        world.network.delay_s = 0.002
        world.network.heal_all()
        for machine in world.machines.values():
            machine.cut_power_after(-1)
            machine.pause(paused=False)
            machine.boot()

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._loop.call_later(delay_s, action, context=self._loop.outside.context)

    def _any(self) -> Machine:
        return self._chance.choice(list(self._world.machines.values()))

    def _while_s(self) -> float:
        """How long it lasts: shorter than anybody notices, or longer."""
        return self._chance.choice((0.1, 1.0, 5.0)) * (0.5 + self._chance.random())

    # --- machines

    def _kill(self) -> None:
        machine = self._any()
        machine.kill()
        self._later(self._while_s(), machine.boot)

    def _cut_power(self) -> None:
        machine = self._any()
        machine.cut_power()
        self._later(self._while_s(), machine.boot)

    def _cut_power_amid_work(self) -> None:
        machine = self._any()
        machine.cut_power_after(self._chance.randint(1, 60))
        self._later(2.0 + self._while_s(), machine.boot)

    def _cut_all_power(self) -> None:
        for machine in self._world.machines.values():
            machine.cut_power()
            self._later(self._while_s(), machine.boot)

    def _restart_cleanly(self) -> None:
        machine = self._any()
        machine.stop()
        self._later(2.0 + self._while_s(), machine.boot)

    def _pause(self) -> None:
        machine = self._any()
        machine.pause(paused=True)
        self._later(self._while_s(), lambda: machine.pause(paused=False))

    def _jump_clock(self) -> None:
        machine = self._any()
        machine.skew_ms = self._chance.randint(-_SKEW_MAX_MS, _SKEW_MAX_MS)
        self._world.say(f"{machine.host} has its clock off by {machine.skew_ms} ms")

    # --- wires

    def _cut_one_way(self) -> None:
        source, target = self._chance.sample(self._world.hosts, 2)
        self._cut([(source, target)])

    def _isolate(self) -> None:
        host = self._any().host
        others = [other for other in self._world.hosts if other != host]
        self._cut([pair for other in others for pair in ((host, other), (other, host))])

    def _cut(self, pairs: list[tuple[str, str]]) -> None:
        network = self._world.network
        for source, target in pairs:
            self._world.say(f"{source} no longer reaches {target}")
            network.cut(source, target)
            self._later(self._while_s(), lambda source=source, target=target: network.heal(source, target))  # type: ignore[misc]

    def _change_weather(self) -> None:
        network = self._world.network
        network.break_chance = self._chance.choice((0.0, 0.002, 0.02))
        network.delay_s = self._chance.choice((0.0005, 0.002, 0.02))
        self._world.say(f"parcels break at {network.break_chance} and take {network.delay_s} s")
