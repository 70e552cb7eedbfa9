"""Replicas of a quorum in one process: real sockets and dispatch, files real or in memory, and no broker around."""

import asyncio
import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from headrace.broker.api import Api
from headrace.broker.dispatch import Dispatch, load_apis
from headrace.broker.faults import Faults
from headrace.broker.metadata_fetch import fetch_metadata
from headrace.broker.refusals import Refusals
from headrace.coordination.quorum.quorum import Quorum
from headrace.coordination.quorum.settings import QuorumSettings
from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.cores.controller import Defaults, NewTopic, create_topics, delete_topics
from headrace.cores.controller.snapshot import snapshot_records
from headrace.cores.metadata import Metadata
from headrace.cores.producers import ProducerStates
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.messages import AddVoterRequest
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.histogram import Histogram
from headrace.model.log_config import LogConfig
from headrace.net.connection import Limits
from headrace.net.listener import Listener
from headrace.storage.log_dir import LogDir
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse, SupportedFeatureKey

CLUSTER = "a-cluster-of-its-own"
HOST = "127.0.0.1"
METADATA_LOG = "__cluster_metadata-0"
QUORUM_APIS = (52, 53, 54, 55, 59, 80, 81, 82)
PATIENCE_S = 30.0
"""Nothing here takes long; who waits longer waits for ever."""
QUICK = {"election_timeout_ms": 200, "fetch_timeout_ms": 400, "election_backoff_max_ms": 100, "fetch_wait_max_ms": 100}
"""A quorum that notices soon what happens to it."""


def directory_id(node_id):
    """The directory a node has unless it gets a new disk."""
    return UUID(int=0x1000_0000_0000_0000_0000 + node_id)


def _threads(node_id):
    return ThreadPoolExecutor(4, thread_name_prefix=f"node-{node_id}")


class Standing:
    """What handlers take for the broker."""

    def __init__(self):
        self.quorum = None
        self.tasks = set()
        self.request_times = defaultdict(Histogram)
        self.refusals = Refusals(now_ms)

    def spawn(self, work):
        """Run something in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def _versions(call, request):
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=api.low, max_version=api.high)
            for key, api in sorted(quorum_apis().items())
        ),
        supported_features=(
            SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
            SupportedFeatureKey(name="metadata.version", min_version=7, max_version=25),
        ),
    )


def quorum_apis():
    """The handlers of the quorum's APIs, as a controller's listener has them."""
    apis = {key: api for key, api in load_apis().items() if key in QUORUM_APIS}
    apis[1] = Api(key=1, low=4, high=18, handle=fetch_metadata, raw=True)
    apis[18] = Api(key=18, low=0, high=4, handle=_versions)
    return apis


class Node:
    """One replica: its disk, its address, and while it runs its quorum."""

    def __init__(self, node_id, files, path, *, bell=None, segment_bytes=1 << 20):
        self.id = node_id
        self.bell = bell or asyncio.Event()
        """Rung whenever the quorum tells something."""
        self.files = files
        self.path = path
        self.port = 0
        self.directory_id = directory_id(node_id)
        self.before = []
        """Records of the image it began with."""
        self.committed = []
        self.leaderships = []
        self.quorum = None
        self._config = LogConfig(cleanup_delete=False, segment_bytes=segment_bytes)
        self._threads = _threads(node_id)
        self._standing = Standing()
        self._listener = None
        self._log_dir = None

    @property
    def endpoint(self):
        """Where its controller listens."""
        return Endpoint("CONTROLLER", HOST, self.port)

    async def listen(self):
        """Take an address, the same as before if there was one."""
        apis = quorum_apis()
        self._standing = Standing()
        self._listener = Listener(
            Dispatch(self._standing, apis, Faults(apis)),
            name="CONTROLLER",
            limits=Limits(),
            connections_max=100,
            connections_per_address_max=100,
            on_refuse=lambda peer, reason: None,
        )
        await self._listener.bind(HOST, self.port, backlog=10)
        self.port = self._listener.port

    def open_log(self):
        """The log dir and the metadata log in it."""
        log_dir = LogDir.open(self.files, self.path)
        if METADATA_LOG in log_dir.log_names():
            report = log_dir.load(
                [METADATA_LOG],
                config_for=lambda _: self._config,
                producers_for=lambda _: ProducerStates(),
                now_ms=now_ms(),
            )
            assert report.failed == {}
            return log_dir, report.logs[METADATA_LOG]
        log = log_dir.create_log(
            METADATA_LOG,
            topic_id=UUID(int=1),
            config=self._config,
            producers=ProducerStates(),
            now_ms=now_ms(),
        )
        return log_dir, log

    @property
    def start_offset(self):
        """Where its log begins."""
        return self._log_dir.logs[METADATA_LOG].log_start_offset

    @property
    def is_listening(self):
        """Whether it has its address."""
        return self._listener is not None

    async def start(self, voters, *, core=None, bootstrap=(), snapshots=None):
        """Run; `voters` are the static ones, None if the log names them."""
        self._log_dir, log = self.open_log()
        settings = QuorumSettings(
            key=ReplicaKey(self.id, self.directory_id),
            core=QuorumConfig(
                cluster_id=CLUSTER,
                endpoints=(self.endpoint,),
                bootstrap_servers=len(bootstrap),
                **{**QUICK, **(core or {})},
            ),
            static_voters=voters,
            bootstrap_servers=tuple(bootstrap),
            snapshots=snapshots or SnapshotPolicy(),
            stop_timeout_ms=5_000,
        )
        self.quorum = Quorum(
            log,
            Metadata(),
            log_dir=self._log_dir,
            settings=settings,
            executor=self._threads,
            clock=now_ms,
            chance=random.Random(self.id),
        )
        self.committed = []
        self.quorum.on_commit = self._on_commit
        self.quorum.on_leadership = self._on_leadership
        self.quorum.on_fault = lambda fault: self.bell.set()
        self._standing.quorum = self.quorum
        await self.quorum.start()
        self.before = list(snapshot_records(self.quorum.metadata))
        if self._listener is not None:
            await self._listener.serve()

    async def _on_commit(self, records):
        self.committed.append(list(records))
        self.bell.set()

    def _on_leadership(self, is_active):
        self.leaderships.append(is_active)
        self.bell.set()

    async def stop(self):
        """Stop in good order."""
        await self.quorum.stop()
        await self._hang_up()
        assert self._log_dir.close(now_ms()) == {}

    async def kill(self):
        """Stop as a crash does: no goodbye, no flush."""
        self.quorum.abandon()
        await self._hang_up()
        self._threads.shutdown()  # A crash ends threads, too; here they are waited for, lest they write later.
        self._threads = _threads(self.id)
        self._log_dir.abandon()

    async def _hang_up(self):
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None
        for task in tuple(self._standing.tasks):
            task.cancel()

    def close(self):
        """Let go of the threads."""
        self._threads.shutdown()


def creation(*names, partitions=2):
    """A command that creates topics, two partitions each, all on broker 1."""
    wanted = [
        NewTopic(name=name, topic_id=UUID(int=random.getrandbits(128)), partitions=partitions, replication_factor=1)
        for name in names
    ]
    return lambda metadata: create_topics(
        metadata, wanted, brokers=[1], defaults=Defaults(partitions=1, replication_factor=1)
    )


def deletion(metadata, name):
    """A command that deletes a topic."""
    topic_id = metadata.topics[name].topic_id
    return lambda ahead: delete_topics(ahead, topic_ids=[topic_id])


def now_ms():
    """The wall clock."""
    return time.time_ns() // 1_000_000


def static_voters(nodes):
    """These nodes as `controller.quorum.voters` would name them."""
    return VoterSet(Voter(ReplicaKey(node.id), (node.endpoint,)) for node in nodes)


def dynamic_voters(nodes):
    """These nodes as a VotersRecord would name them."""
    return VoterSet(Voter(ReplicaKey(node.id, node.directory_id), (node.endpoint,)) for node in nodes)


async def join(leader, key, endpoint):
    """Have a node made a voter as soon as the leader knows that it has all of the log, asking again as people do."""
    request = AddVoterRequest(voter=key, endpoints=(endpoint,), timeout_ms=10_000)
    async with asyncio.timeout(2 * PATIENCE_S):
        while (answer := await leader.quorum.handle(request)).error is ErrorCode.REQUEST_TIMED_OUT:  # noqa: ASYNC110 - it may be another process
            await asyncio.sleep(0.02)
    assert answer.error is ErrorCode.NONE


class Nodes:
    """Several replicas that know each other."""

    def __init__(self, count, files_of, path_of, **options):
        self.bell = asyncio.Event()
        self.all = [Node(n, files_of(n), path_of(n), bell=self.bell, **options) for n in range(1, count + 1)]
        self.options = {}
        """What every start is given."""

    def __getitem__(self, node_id):
        return self.all[node_id - 1]

    async def __aenter__(self):
        for node in self.all:
            await node.listen()
        return self

    async def __aexit__(self, *_):
        for node in self.all:
            if node in self.running:
                await node.kill()
            node.close()

    @property
    def running(self):
        """Those that take part now."""
        return [node for node in self.all if node.quorum is not None and node.quorum.fault is None]

    async def start(self, *node_ids):
        """Start some, or all, with the first three as the static voters unless the options say otherwise."""
        options = {"voters": static_voters(self.all[:3]), **self.options}
        for node in [self[node_id] for node_id in node_ids] or self.all:
            if not node.is_listening:
                await node.listen()
            await node.start(**options)

    async def until(self, happened):
        """Wait until something is so that a quorum tells of; the test fails if it never is."""
        async with asyncio.timeout(PATIENCE_S):
            while not happened():
                self.bell.clear()
                await self.bell.wait()

    async def active(self):
        """The active controller, once there is one; the latest, if an older one has not noticed yet."""
        await self.until(lambda: any(node.quorum.is_active for node in self.running))
        return max((node for node in self.running if node.quorum.is_active), key=lambda node: node.quorum.leader_epoch)

    async def run(self, command):
        """Run a command on whichever node is the active controller, trying again as clients do."""
        while True:
            active = await self.active()
            try:
                return await active.quorum.run(command)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise

    async def create(self, *names):
        """Create topics, each by a command of its own, all at once."""
        await asyncio.gather(*(self.run(creation(name)) for name in names))

    async def delete(self, name):
        """Delete a topic."""
        active = await self.active()
        await self.run(deletion(active.quorum.metadata, name))

    async def caught_up(self):
        """Wait until every running node has what the leader has."""
        async with asyncio.timeout(PATIENCE_S):
            for node in self.running:
                await node.quorum.caught_up()

    async def agree(self):
        """Whether all running nodes have the same image, once they have caught up."""
        await self.caught_up()
        images = [node.quorum.metadata for node in self.running]
        return all(image == images[0] for image in images)
