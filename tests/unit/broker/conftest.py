"""A desk to ask a broker at: the real broker on a disk in memory, asked without a socket but in the wire's bytes."""

import asyncio
import inspect
from types import SimpleNamespace

import pytest

from headrace.broker.api import Call
from headrace.broker.broker import Broker
from headrace.broker.coordinators import coordinator
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.settings.broker import BrokerConfig
from headrace.storage.memory_files import MemoryFiles
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.header import RequestHeader
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Who has a coordinator's topic made finds its shards loaded, however slow the machine is."""
    monkeypatch.setattr(coordinator, "SHARDS_AWAITED_S", 60.0)


class Desk:
    """A running broker, and questions to it."""

    def __init__(self, settings=None, *, files=None):
        self.files = files or MemoryFiles()
        self._settings = settings or {}
        self._runner = asyncio.Runner()
        self.broker = None
        self.now_ms = NOW_MS

    def __enter__(self):
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "log.dirs": "/data",
            **self._settings,
        }
        self.broker = Broker(BrokerConfig.from_properties(properties), files=self.files, clock=lambda: self.now_ms)
        self._runner.run(self.broker.start())
        return self

    def __exit__(self, *_):
        self._runner.run(self.broker.stop())
        self._runner.close()

    def restart(self):
        """Stop and start again on the same disk."""
        self._runner.run(self.broker.stop())
        self.__enter__()

    def power_cut(self):
        """Lose all that was not flushed, and start again on what is left."""
        self.run(self.broker.abandon())
        self.files.power_cut()
        self.__enter__()

    def crash(self):
        """End as `kill -9` ends a process, the page cache untouched, and start again."""
        self.run(self.broker.abandon())
        self.__enter__()

    def ask(self, api, request, *, version=None, listener="PLAINTEXT"):
        """What a client that speaks `version` (the newest, if not said) gets for an answer."""
        return self.run(self.asked(api, request, version=version, listener=listener))

    async def asked(self, api, request, *, version=None, listener="PLAINTEXT", client_id="test"):
        """The same on the broker's loop, where several may wait for each other."""
        version = api.high if version is None else version
        header = RequestHeader(api.key, version, 1, client_id, 0)
        call = Call(
            self.broker, SimpleNamespace(listener_name=listener, peer=("127.0.0.1", 50000), sends_files=False), header
        )
        sent = decode_request(api.key, version, memoryview(encode_request(api.key, version, request)), 0)
        answer = api.handle(call, sent)
        answer = await answer if inspect.isawaitable(answer) else answer
        return decode_response(api.key, version, memoryview(encode_response(api.key, version, answer)), 0)

    def run(self, work):
        """Do something on the broker's loop."""
        return self._runner.run(work)

    def create(self, name, *, partitions=1, **configs):
        """Create a topic; settings are written with underscores."""
        from headrace.broker.handlers.api19_create_topics import API

        asked = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ),
        )
        (result,) = self.ask(API, CreateTopicsRequest(topics=(asked,))).topics
        assert result.error_code == 0, result.error_message
        return result

    def produce(self, topic, count, *, partition=0, producer_id=-1):
        """Append one batch of `count` records and wait until it is safe."""
        batch = build_batch(
            [NewRecord(timestamp=NOW_MS, key=b"k", value=b"v", headers=()) for _ in range(count)],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
        )

        async def append():
            found = self.broker.partitions.require(topic, partition)
            appended = found.append(memoryview(batch), read_header(batch), NOW_MS)
            safe = asyncio.get_running_loop().create_future()
            found.when_safe(appended.end_offset, safe.set_result)
            return await safe

        assert self.run(append()) is None


@pytest.fixture
def desk():
    """A broker with the default settings."""
    with Desk() as desk:
        yield desk


@pytest.fixture
def open_desk():
    """Opens brokers with settings or on a disk of the test's own; all are closed at the end."""
    desks = []

    def opened(settings=None, *, files=None):
        desks.append(Desk(settings, files=files).__enter__())
        return desks[-1]

    yield opened
    for desk in desks:
        desk.__exit__()
