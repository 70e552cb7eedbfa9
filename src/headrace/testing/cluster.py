"""`Cluster`: real brokers in the test's own process, on a thread and loop of their own, with faults to order.

    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

It is the same broker that `kafka-server-start.sh` runs: real sockets, real files, real flushes. `Cluster(brokers=3)`
has three of them, which can be killed and brought back one by one.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args

from headrace.broker.broker import Broker
from headrace.broker.faults import Fault
from headrace.broker.listeners import CannotListen
from headrace.settings.broker import BrokerConfig
from headrace.testing.cluster_nodes import ClusterNodes
from headrace.testing.failing_files import FailingFiles
from headrace.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from types import TracebackType

Result = TypeVar("Result")
FaultKind = Literal["refuse", "delay", "drop", "drop_reply"]

_START_S = 30.0
_STARTS_MAX = 5
"""How often ports are chosen again that somebody else took before we could."""
_KEYS = {api.name.lower(): key for key, api in APIS.items()}


class Cluster:
    """The brokers of a test; a context manager, or `start` and `stop` by hand."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        brokers: int = 1,
        directory: str | Path | None = None,
        node_id: int = 1,
    ) -> None:
        """`settings` go over the defaults; with `directory` the data stays there after `stop`.

        Several brokers have the ids `node_id` and on.
        """
        assert brokers >= 1, "a cluster has at least one broker"
        self._kept = directory is not None
        self.directory = Path(directory) if directory is not None else None
        self.nodes = tuple(range(node_id, node_id + brokers))
        """The ids of all nodes, whether they run or not."""
        self.brokers: dict[int, Broker] = {}
        """The running nodes by id, for those who look inside."""
        self._plan = ClusterNodes(self.nodes, dict(settings or {}))
        self._files = {node: FailingFiles() for node in self.nodes}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

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
        self._plan.ports.clear()
        self._start()

    def _start(self) -> None:
        assert self._thread is None, "this cluster is running"
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix="headrace-"))
        started: threading.Event = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="headrace-cluster", daemon=True)
        self._thread.start()
        if not started.wait(_START_S):
            raise TimeoutError(f"the cluster did not start within {_START_S} s")
        if failure:
            self._thread.join()
            self._thread = None
            self._remove()
            raise failure[0]

    def stop(self) -> None:
        """Go down cleanly and remove the data, unless the directory was given."""
        if self._thread is not None:
            assert self._loop is not None
            self.call(self._stop_all())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
        if not self._kept:
            self._remove()

    def restart(self, node: int | None = None) -> None:
        """Stop cleanly and start again on the same data and the same port: all, or one node, even if it is down."""
        if node is not None:
            if node in self.brokers:
                self.stop_node(node)
            self._check(node)
            self.call(self._start_nodes([node]))
            return
        kept, self._kept = self._kept, True
        try:
            self.stop()
        finally:
            self._kept = kept
        self._start()

    def kill(self, node: int) -> None:
        """End a node as `kill -9` would: nothing is flushed, nobody is told."""
        self.call(self._take(node).abandon())

    def stop_node(self, node: int) -> None:
        """Have one node stop cleanly: others take over what it leads first."""
        self.call(self._take(node).stop())

    def _take(self, node: int) -> Broker:
        self._check(node)
        if node not in self.brokers:
            raise ValueError(f"node {node} does not run")
        return self.brokers.pop(node)

    def _check(self, node: int) -> None:
        if node not in self.nodes:
            raise ValueError(f"there is no node {node} in this cluster; there are {', '.join(map(str, self.nodes))}")

    def _remove(self) -> None:
        if self.directory is not None and not self._kept:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        loop = self._loop = _new_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._start_all())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            failure.append(error)
            _close(loop)
            started.set()
            return
        started.set()
        loop.run_forever()
        _close(loop)

    async def _start_all(self) -> None:
        assert self.directory is not None
        self.brokers.clear()
        self._plan.format(self.directory)
        for attempt in range(1, _STARTS_MAX + 1):
            try:
                await self._start_nodes(self.nodes)
                break
            except CannotListen:
                if attempt == _STARTS_MAX or not self._plan.choose_ports():
                    raise

    async def _start_nodes(self, nodes: Iterable[int]) -> None:
        """Start nodes together, as none comes up before most of them are there; if one cannot, none does."""
        assert self.directory is not None
        made = {node: self._make(node, self.directory) for node in nodes}
        tasks = [asyncio.ensure_future(broker.start()) for broker in made.values()]
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = next((task.exception() for task in tasks if task in done and task.exception()), None)
        if failed is not None:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._end(made.values())
            raise failed
        self.brokers |= made
        ends = {node: broker.endpoints.get("PLAINTEXT") for node, broker in made.items()}
        self._plan.ports.update({node: end.port for node, end in ends.items() if end})

    def _make(self, node: int, directory: Path) -> Broker:
        config = BrokerConfig.from_properties(self._plan.properties(node, directory))
        return Broker(config, files=self._files[node])

    async def _stop_all(self) -> None:
        if self._kept:
            await asyncio.gather(*(broker.stop() for broker in self.brokers.values()))
        else:
            await self._end(self.brokers.values())

    async def _end(self, brokers: Iterable[Broker]) -> None:
        """Stop nodes that nobody will start again; of several the last would wait in vain for somebody to take over."""
        if len(self.nodes) == 1:
            await asyncio.gather(*(broker.stop() for broker in brokers))
        else:
            await asyncio.gather(*(broker.abandon() for broker in brokers))
            await _settle()
            # What was not closed goes with them.
            self.brokers.clear()

    # --- what a test asks

    @property
    def broker(self) -> Broker:
        """The broker, or the first of those that run."""
        return self.brokers[min(self.brokers)]

    @property
    def port(self) -> int:
        """The port clients connect to, of the first node."""
        return self._plan.ports[self.nodes[0]]

    @property
    def bootstrap(self) -> str:
        """What to give a client as bootstrap.servers: all nodes, whether they run or not."""
        return ",".join(map(self.address, self.nodes))

    def address(self, node: int) -> str:
        """Where clients reach one node."""
        self._check(node)
        return f"127.0.0.1:{self._plan.ports[node]}"

    @property
    def controller(self) -> int:
        """The node that is the active controller, as soon as there is one."""
        return self.call(self._controller())

    def leader_of(self, topic: str, partition: int) -> int:
        """The node that leads a partition, as soon as one does."""
        return self.call(self._leader_of(topic, partition))

    async def _controller(self) -> int:
        while True:
            active = (node for node, broker in self.brokers.items() if broker.quorum.is_active)
            if (found := next(active, None)) is not None:
                return found
            await asyncio.sleep(0.01)

    async def _leader_of(self, topic: str, partition: int) -> int:
        while True:
            known = self.brokers[await self._controller()].metadata.topics.get(topic)
            # A leader that was killed leads until the controller has missed it.
            if known is not None and (chosen := self.brokers.get(known.partitions[partition].leader)) is not None:
                held = chosen.partitions.find((known.topic_id, partition))
                # The controller knows the new one a moment before it knows itself: until then it refuses writes.
                if held is not None and held.is_led:
                    return int(chosen.node_id)
            await asyncio.sleep(0.01)

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something on the brokers' loop and wait for it."""
        assert self._loop is not None, "this cluster is not running"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    def ask(self, question: Callable[[Broker], Result], *, node: int | None = None) -> Result:
        """Look at a broker from its own loop."""

        async def answer() -> Result:
            return question(self.broker if node is None else self.brokers[node])

        return self.call(answer())

    # --- faults, of every node or of the one that is named

    def fail_next(
        self,
        api: int | str,
        kind: FaultKind = "refuse",
        *,
        delay_s: float = 0.0,
        times: int = 1,
        node: int | None = None,
    ) -> None:
        """Let the next requests of an API (its key, or its name such as "Produce") be refused, delayed or dropped."""
        if kind not in get_args(FaultKind):
            raise ValueError(f"{kind!r} is no fault. There are: {', '.join(get_args(FaultKind))}.")
        key = api if isinstance(api, int) else _key_of(api)
        fault = Fault(kind=kind, delay_s=delay_s)
        for one in self.brokers if node is None else [node]:
            self.ask(lambda broker: broker.faults.arm(key, fault, times=times), node=one)

    def fail_next_fsync(self, *, times: int = 1, node: int | None = None) -> None:
        """Let the next flushes of data files fail with EIO, as a dying disk would."""
        for one in self.nodes if node is None else [node]:
            self._files[one].fail_fsync(times)

    def disk_full(self, *, full: bool = True, node: int | None = None) -> None:
        """Let every write fail with ENOSPC until told otherwise."""
        for one in self.nodes if node is None else [node]:
            self._files[one].full = full


def _key_of(api: str) -> int:
    key = _KEYS.get(api.lower())
    if key is None:
        near = get_close_matches(api.lower(), _KEYS, n=1)
        meant = f" Did you mean {APIS[_KEYS[near[0]]].name}?" if near else ""
        raise ValueError(f"{api!r} is no API of Kafka's.{meant}")
    return key


async def _settle() -> None:
    """End what nodes that were abandoned leave behind, and let their sockets close."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for _ in range(3):
        await asyncio.sleep(0)


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
