"""A network that loses, delays, reorders and repeats messages, and whose links can be cut in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.sim.scheduler import Scheduler


class Weather(Struct, kw_only=True):
    """How bad the network is; may be changed while a run goes on."""

    delay_ms: tuple[int, int] = (1, 5)
    """The shortest and the longest time a message takes; a wide range reorders."""
    loss: float = 0.0
    repeats: float = 0.0
    """The share of messages that arrive twice."""
    slow: float = 0.0
    """The share of messages that take very long."""
    slow_ms: tuple[int, int] = (500, 3000)


CALM = Weather()


class Network:
    """Carries messages between numbered nodes."""

    def __init__(self, scheduler: Scheduler, deliver: Callable[[int, int, Any], None]) -> None:
        """`deliver` is called with the sender, the receiver and the message, when it arrives."""
        self._scheduler = scheduler
        self._deliver = deliver
        self._cuts: set[tuple[int, int]] = set()
        self.weather = Weather()
        self.sent = self.lost = 0

    def send(self, sender: int, receiver: int, message: Any) -> None:
        """Send a message; it may arrive once, twice or never."""
        chance = self._scheduler.chance
        weather = self.weather
        self.sent += 1
        if chance.random() < weather.loss:
            self.lost += 1
            return
        for _ in range(2 if chance.random() < weather.repeats else 1):
            span = weather.slow_ms if chance.random() < weather.slow else weather.delay_ms
            self._scheduler.after(chance.randint(*span), lambda: self._arrive(sender, receiver, message))

    def _arrive(self, sender: int, receiver: int, message: Any) -> None:
        if (sender, receiver) in self._cuts:
            self.lost += 1
        else:
            self._deliver(sender, receiver, message)

    def cut(self, sender: int, receiver: int) -> None:
        """Let nothing through from one node to another any more; the other way stays open."""
        self._cuts.add((sender, receiver))

    def part(self, some: Iterable[int], others: Iterable[int]) -> None:
        """Let nothing through between two groups of nodes."""
        others = tuple(others)
        for one in some:
            for other in others:
                self._cuts |= {(one, other), (other, one)}

    def is_cut(self, sender: int, receiver: int) -> bool:
        """Whether nothing gets through from one node to another."""
        return (sender, receiver) in self._cuts

    def heal(self) -> None:
        """Mend every cut."""
        self._cuts.clear()
