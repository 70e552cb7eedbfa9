"""An event loop on which real brokers run in virtual time: no sockets, no threads, no clock but its own.

Each process has a queue of its own in asyncio's order; whose turn it is is drawn, as it would be between machines.
Time passes only when nobody has anything left to do. Work given to threads is done by the loop, some time later, and
its result is heard of some time after that: a flush is over before its process knows.
"""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from headrace.sim.process import PROCESS, Killed, Process

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine, Sequence
    from contextvars import Context

    from headrace.sim.virtual_network import VirtualNetwork, VirtualServer
    from headrace.sim.virtual_transport import VirtualTransport

_SLOW_JOB = 0.02
"""How often a disk takes its time."""
_SLOW_S = 0.8
_QUICK_S = 0.004
_STEPS_WITHOUT_TIME_MAX = 200_000


class Stuck(AssertionError):
    """Somebody is busy and time does not pass, or everybody waits for what never comes."""


class NumberedTask(asyncio.Task[Any]):
    """A task that hashes as its number, so that a set of tasks has the same order in every run."""

    def __init__(self, number: int, work: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number


_Loop: Any = asyncio.AbstractEventLoop
"""A run needs a third of it, and the rest need not be written: it fails as it should, if it is ever called."""


class VirtualLoop(_Loop):  # type: ignore[misc]
    """asyncio's loop as a function of a seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.network: VirtualNetwork
        self.outside = Process("outside")
        """Who pulls the strings: what happens to processes belongs to none of them."""
        self.mistakes: list[str] = []
        """What nobody caught."""
        self.steps = 0
        self._processes = [self.outside]
        self._all = [self.outside]
        self._now_s = 0.0
        self._due: list[tuple[float, int, asyncio.TimerHandle, Process]] = []
        self._count = 0
        self._is_over = False

    # --- turns

    def spawn_process(self, host: str) -> Process:
        """A new process, which has nothing to do yet."""
        process = Process(host)
        self._processes = [*(one for one in self._processes if one.is_alive), process]
        self._all.append(process)
        return process

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run everybody until `main`, which is nobody's, is done."""
        asyncio.events._set_running_loop(self)  # noqa: SLF001 - asyncio documents it for makers of loops
        try:
            task = self.outside.context.run(self.create_task, main)
            steps, moment_s = 0, self._now_s
            while not task.done():
                if self._now_s != moment_s:
                    steps, moment_s = 0, self._now_s
                steps += 1
                if steps > _STEPS_WITHOUT_TIME_MAX:
                    raise Stuck(f"time stands still at {moment_s:.3f} s")
                self._step()
            return task.result()
        finally:
            asyncio.events._set_running_loop(None)  # noqa: SLF001

    def _step(self) -> None:
        runnable = [one for one in self._processes if one.ready and not one.is_paused]
        if not runnable:
            self._pass_time()
            return
        self.steps += 1
        process = runnable[0] if len(runnable) == 1 else self.chance.choice(runnable)
        handle = process.ready.popleft()
        if not handle.cancelled():
            handle._run()  # noqa: SLF001 - what every loop does

    def _pass_time(self) -> None:
        while self._due:
            when_s, _, handle, process = heapq.heappop(self._due)
            if process.is_alive and not handle.cancelled():
                self._now_s = max(self._now_s, when_s)
                process.ready.append(handle)
                return
        raise Stuck(f"everybody waits for ever at {self._now_s:.3f} s")

    def end(self) -> None:
        """Nothing more happens: all that has not ended is thrown away, and what it does about that comes to nothing."""
        self._is_over = True
        for process in self._all:
            process.end()
            for task in process.tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001 - it is meant
                    with suppress(BaseException):
                        task.get_coro().close()

    # --- asyncio's side: time and callbacks

    def time(self) -> float:
        """Seconds since the run began."""
        return self._now_s

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Have something called in its process's turn."""
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        process = context.get(PROCESS, self.outside)
        if process.is_alive and not self._is_over:
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have something called after a while."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have something called at a time."""
        context = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        process = context.get(PROCESS, self.outside)
        if process.is_alive and not self._is_over:
            self._count += 1
            heapq.heappush(self._due, (when, self._count, handle, process))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A timer was cancelled; it is passed over when its time comes."""

    # --- asyncio's side: futures, tasks, threads

    def create_future(self) -> asyncio.Future[Any]:
        """A result that is not there yet."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Begin something."""
        self._count += 1
        task = NumberedTask(self._count, coro, loop=self, name=name or f"task-{self._count}", context=context)
        (PROCESS.get(self.outside) if context is None else context.get(PROCESS, self.outside)).keep(task)
        return task

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Have a thread do something: when it gets to it, and heard of when it is."""
        future = self.create_future()
        self.call_later(self._job_s(), self._work, future, func, args)
        return future

    def _job_s(self) -> float:
        return self.chance.random() * (_SLOW_S if self.chance.random() < _SLOW_JOB else _QUICK_S)

    def _work(self, future: asyncio.Future[Any], func: Callable[..., Any], args: Sequence[Any]) -> None:
        asyncio.events._set_running_loop(None)  # noqa: SLF001 - a thread has no loop
        result, fault = None, None
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - it is for whoever waits
            fault = error
        finally:
            asyncio.events._set_running_loop(self)  # noqa: SLF001
        self.call_later(self._job_s(), _settle, future, result, fault)

    # --- asyncio's side: the network

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> VirtualServer:
        """Bind an address of the process's host."""
        return self.network.bind(PROCESS.get(), protocol_factory, port)

    async def create_connection(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> tuple[VirtualTransport, asyncio.BaseProtocol]:
        """Connect to an address."""
        return await self.network.connect(PROCESS.get(), protocol_factory, host, port)

    # --- asyncio's side: the rest

    def get_debug(self) -> bool:
        """Whether asyncio should look closely; it would read the real clock for it."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Take down what nobody caught."""
        if not self._is_over and not isinstance(context.get("exception"), Killed):
            self.mistakes.append(f"{context.get('message')}: {context.get('exception')!r}")

    def is_running(self) -> bool:
        """Always, as seen from inside."""
        return True

    def is_closed(self) -> bool:
        """Whether the run is over."""
        return self._is_over


def _settle(future: asyncio.Future[Any], result: Any, fault: Exception | None) -> None:
    if future.done():
        return
    if fault is None:
        future.set_result(result)
    else:
        future.set_exception(fault)
