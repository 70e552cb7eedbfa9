"""What gives the core one input at a time, and has its outputs carried out in order before the next.

Most outputs are done at once. One that has to wait for the disk is a coroutine: until it is done, inputs queue up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from headrace.cores.raft.inputs import Tick
from headrace.cores.raft.outputs import BecameLeader, LeaderKnown, Persist, Wake
from headrace.model.errors import StorageFault

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from headrace.cores.raft.inputs import Input
    from headrace.cores.raft.outputs import Output
    from headrace.cores.raft.raft import Raft

_UNHEARD = LeaderKnown | BecameLeader | Wake
"""Outputs of which no other node hears anything."""


class Driver:
    """The one that steps the core."""

    def __init__(
        self,
        raft: Raft,
        acts: Mapping[type[Any], Callable[[Any], Coroutine[Any, Any, None] | None]],
        *,
        on_fault: Callable[[StorageFault], None],
    ) -> None:
        self._raft = raft
        self._acts: dict[type[Any], Callable[[Any], Coroutine[Any, Any, None] | None]] = {**acts, Wake: self._wake}
        self._on_fault = on_fault
        self._loop = asyncio.get_running_loop()
        self._inputs: deque[Input] = deque()
        self._outputs: deque[Output] = deque()
        self._busy = False
        self._stopped = False
        self._waiting: asyncio.Task[None] | None = None
        self._idle: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def now_ms(self) -> int:
        """The core's clock, which never runs backwards."""
        return int(self._loop.time() * 1000)

    def start(self) -> None:
        """Let the core take the role that what is on disk allows."""
        self._outputs += self._raft.start(self.now_ms())
        self._go_on()

    def feed(self, given: Input, *, first: bool = False) -> None:
        """Give the core an input, at once if it is not waiting for the disk; `first` is before all that wait."""
        if self._stopped:
            return
        if first:
            self._inputs.appendleft(given)
        else:
            self._inputs.append(given)
        if not self._busy:
            self._go_on()

    @property
    def is_idle(self) -> bool:
        """Whether an input would be taken at once."""
        return not self._busy and not self._stopped

    async def idle(self) -> None:
        """Wait until an input would be taken at once, or never again."""
        while self._busy and not self._stopped:
            turn = self._loop.create_future()
            self._idle.append(turn)
            await turn

    def stop(self) -> None:
        """Take nothing more, and do nothing more."""
        self._stopped = True
        self._inputs.clear()
        self._outputs.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._tell_idle()

    def cancel(self) -> None:
        """Wait for nothing that is under way."""
        if self._waiting is not None:
            self._waiting.cancel()

    async def ended(self) -> None:
        """Wait for what was under way when it was stopped: a thread cannot be called back."""
        if self._waiting is not None:
            await asyncio.wait({self._waiting})

    def _go_on(self) -> None:
        self._busy = True
        try:
            while not self._stopped and (self._outputs or self._inputs):
                if not self._outputs:
                    self._outputs += self._raft.step(self._inputs.popleft(), self.now_ms())
                    continue
                output = self._outputs.popleft()
                if isinstance(output, Persist) and self._is_superseded():
                    continue
                work = self._acts[type(output)](output)
                if work is not None:
                    self._waiting = self._loop.create_task(work)
                    self._waiting.add_done_callback(self._done)
                    return
        except StorageFault as fault:
            self._fail(fault)
            return
        except Exception as mistake:
            # A replica that is in doubt about itself must not go on voting and acknowledging.
            self._fail(StorageFault(f"The quorum came upon a mistake of its own: {mistake!r}"))
            raise
        self._busy = False
        self._tell_idle()

    def _is_superseded(self) -> bool:
        """Whether another state is written before anybody could hear of this one: an election alone has three."""
        for output in self._outputs:
            if isinstance(output, Persist):
                return True
            if not isinstance(output, _UNHEARD):
                return False
        return False

    def _done(self, work: asyncio.Task[None]) -> None:
        self._waiting = None
        if work.cancelled() or self._stopped:
            return
        fault = work.exception()
        if isinstance(fault, StorageFault):
            self._fail(fault)
        elif fault is not None:
            self._fail(StorageFault(f"The quorum came upon a mistake of its own: {fault!r}"))
            raise fault
        else:
            self._go_on()

    def _fail(self, fault: StorageFault) -> None:
        self.stop()
        self._on_fault(fault)

    def _tell_idle(self) -> None:
        waiting, self._idle = self._idle, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def _wake(self, wake: Wake) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # A little late is right, a little early would make the core ask for the same moment again.
        delay_s = max(wake.at_ms - self.now_ms() + 1, 0) / 1000
        self._timer = self._loop.call_later(delay_s, self.feed, Tick())
