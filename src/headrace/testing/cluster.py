"""`Cluster`: a real broker in the test's own process, on its own thread and loop, with faults to order.

    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

It is the same broker that `kafka-server-start.sh` runs: real sockets, real files, real flushes.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from headrace.broker.broker import Broker
from headrace.broker.faults import Fault
from headrace.settings.broker import BrokerConfig
from headrace.testing.failing_files import FailingFiles
from headrace.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from types import TracebackType

Result = TypeVar("Result")

_START_S = 30.0
_KEYS = {api.name.lower(): key for key, api in APIS.items()}


class Cluster:
    """One broker for a test; a context manager, or `start` and `stop` by hand."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, directory: str | Path | None = None, node_id: int = 1
    ) -> None:
        """`settings` go over the defaults; with `directory` the data stays there after `stop`."""
        self._kept = directory is not None
        self.directory = Path(directory) if directory is not None else None
        self._settings = dict(settings or {})
        self._node_id = node_id
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._files = FailingFiles()
        self.broker: Broker

    # --- life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Come up; when this returns, clients are answered."""
        assert self._thread is None, "this cluster is running"
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix="headrace-"))
        started: threading.Event = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="headrace-cluster", daemon=True)
        self._thread.start()
        if not started.wait(_START_S):
            raise TimeoutError(f"the broker did not start within {_START_S} s")
        if failure:
            self._thread.join()
            self._thread = None
            self._remove()
            raise failure[0]

    def stop(self) -> None:
        """Go down cleanly and remove the data, unless the directory was given."""
        if self._thread is not None:
            assert self._loop is not None
            self.call(self.broker.stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
        if not self._kept:
            self._remove()

    def restart(self) -> None:
        """Stop cleanly and start again on the same data and the same port."""
        kept, self._kept = self._kept, True
        port = self.port
        try:
            self.stop()
        finally:
            self._kept = kept
        self._settings.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0")
        self.start()

    def _remove(self) -> None:
        if self.directory is not None and not self._kept:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        loop = self._loop = _new_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._start_broker())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            failure.append(error)
            _close(loop)
            started.set()
            return
        started.set()
        loop.run_forever()
        _close(loop)

    async def _start_broker(self) -> None:
        broker = Broker(BrokerConfig.from_properties(self._properties()), files=self._files)
        try:
            await broker.start()
        except BaseException:
            await broker.stop()
            raise
        self.broker = broker

    def _properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(self._node_id),
            "controller.quorum.voters": f"{self._node_id}@127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "log.dirs": str(self.directory),
            # A test knows when its consumers are there; waiting for more would only cost it three seconds.
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }

    # --- what a test asks

    @property
    def port(self) -> int:
        """The port clients connect to."""
        return self.broker.endpoints["PLAINTEXT"].port

    @property
    def bootstrap(self) -> str:
        """What to give a client as bootstrap.servers."""
        return f"127.0.0.1:{self.port}"

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something on the broker's loop and wait for it."""
        assert self._loop is not None, "this cluster is not running"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    def ask(self, question: Callable[[Broker], Result]) -> Result:
        """Look at the broker from its own loop."""

        async def answer() -> Result:
            return question(self.broker)

        return self.call(answer())

    # --- faults

    def fail_next(
        self,
        api: int | str,
        kind: Literal["refuse", "delay", "drop", "drop_reply"] = "refuse",
        *,
        delay_s: float = 0.0,
        times: int = 1,
    ) -> None:
        """Let the next requests of an API (its key, or its name such as "Produce") be refused, delayed or dropped."""
        key = api if isinstance(api, int) else _KEYS[api.lower()]
        fault = Fault(kind=kind, delay_s=delay_s)
        self.ask(lambda broker: broker.faults.arm(key, fault, times=times))

    def fail_next_fsync(self, *, times: int = 1) -> None:
        """Let the next flushes of data files fail with EIO, as a dying disk would."""
        self._files.fail_fsync(times)

    def disk_full(self, *, full: bool = True) -> None:
        """Let every write fail with ENOSPC until told otherwise."""
        self._files.full = full


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End a loop that has come to rest, with whatever threads it made for itself."""
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
