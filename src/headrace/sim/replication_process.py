"""A process in a simulation: it can be killed, started again, and made to stand still."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.scheduler import Scheduler


class SimulatedProcess(ABC):
    """What was begun in one life of it is not carried on in the next."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.incarnation = 0
        self.is_up = False
        self._is_paused = False
        self._held: list[Callable[[], None]] = []

    def _begin_life(self) -> None:
        self.incarnation += 1
        self.is_up = True
        self._is_paused = False
        self._held = []

    def pause(self) -> None:
        """Stand still, as under SIGSTOP; what arrives waits."""
        self._is_paused = True

    def resume(self) -> None:
        """Go on with everything that waits."""
        self._is_paused = False
        held, self._held = self._held, []
        incarnation = self.incarnation
        for action in held:
            if self.is_up and incarnation == self.incarnation:
                action()

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, if this life still goes on then."""
        incarnation = self.incarnation

        def due() -> None:
            if self.is_up and incarnation == self.incarnation:
                if self._is_paused:
                    self._held.append(action)
                else:
                    action()

        self._scheduler.after(delay_ms, due)

    def deliver(self, sender: int, message: tuple[Any, ...]) -> None:
        """Something arrived."""
        if not self.is_up:
            return
        if self._is_paused:
            self._held.append(lambda: self.deliver(sender, message))
        else:
            self._handle(sender, message)

    @abstractmethod
    def _handle(self, sender: int, message: tuple[Any, ...]) -> None:
        """Act on a message."""
