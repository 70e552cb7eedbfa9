"""kill -9 while topics come and go: each is there whole or not at all, and what was acknowledged stays so."""

import os
import random
import re
import shutil
import threading

import pytest

from crash.load import BACKOFF_S, Acks, Client
from crash.log_reader import batches_from, records_of
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.testing import Cluster
from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire_client import WireClient

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADRACE_KILLS", "6"))
KILLS_LONG = int(os.environ.get("HEADRACE_KILLS", "60"))
CLIENTS = 3
PARTITION_DIRECTORY = re.compile(r"(.+)-(\d+)\Z")


class TopicChurner(Client):
    """Creates and deletes topics of its own, and knows of each what must be, must not be, or may be."""

    def __init__(self, number: int, port: int, chance: random.Random, acks: Acks) -> None:
        super().__init__(f"churner-{number}", port, [], chance)
        self.there: dict[str, int] = {}
        """Partitions of the topics whose creation was acknowledged, their deletion not asked for."""
        self.gone: set[str] = set()
        """Topics whose deletion was acknowledged."""
        self.open: dict[str, int] = {}
        """Topics asked for, one way or the other, and no answer came."""
        self._acks = acks
        self._count = 0
        self.turn = threading.Lock()

    def work(self) -> None:
        """Create two topics for each one deleted, some of them under a name used before."""
        client: WireClient | None = None
        while not self.ending.is_set():
            with self.turn:
                try:
                    client = client or WireClient(self.port)
                    self._change(client)
                    self._acks.add()
                    continue
                except OSError:
                    if client is not None:
                        client.close()
                    client = None
            self.ending.wait(BACKOFF_S)
        if client is not None:
            client.close()

    def _change(self, client: WireClient) -> None:
        if self.there and self.chance.random() < 0.4:
            self._delete_topic(client, self.chance.choice(sorted(self.there)))
        else:
            self._create_topic(client)

    def _create_topic(self, client: WireClient) -> None:
        self._count += 1
        again = sorted(self.gone)
        name = self.chance.choice(again) if again and self.chance.random() < 0.3 else f"{self.name}.{self._count}"
        self.gone.discard(name)
        self.open[name] = partitions = self.chance.randint(1, 6)
        result = client.create_topic(name, partitions=partitions, retention_ms=str(1_000_000 + partitions))
        assert result.error_code == 0, result
        self.there[name] = self.open.pop(name)
        # Something in it: if the name is used again, nothing of this may come back.
        batch = build_batch([NewRecord(1, None, name.encode(), ())])
        assert client.produce(name, bytes(batch)).base_offset == 0

    def _delete_topic(self, client: WireClient, name: str) -> None:
        self.open[name] = self.there.pop(name)
        assert client.delete_topic(name).error_code == 0
        del self.open[name]
        self.gone.add(name)

    def compare(self, port: int) -> None:
        """Hold what is there after a restart against what was promised; what was open is settled by it."""
        with WireClient(port) as client:
            for name, partitions in self.there.items():
                assert is_whole(client, name, partitions), f"{name} was created with {partitions} partitions"
            for name in self.gone:
                assert is_absent(client, name), f"{name} was deleted"
            for name, partitions in self.open.items():
                whole = is_whole(client, name, partitions)
                assert whole or is_absent(client, name), f"{name} is half there"
                if whole:
                    self.there[name] = partitions
                else:
                    self.gone.add(name)
            self.open.clear()


def is_absent(client: WireClient, name: str) -> bool:
    """Whether the broker knows nothing of a topic."""
    return client.describe_topic(name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_whole(client: WireClient, name: str, partitions: int) -> bool:
    """Whether a topic has all its partitions, led, and each takes and gives records."""
    topic = client.describe_topic(name)
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    assert topic.error_code == 0, topic
    assert sorted(p.partition_index for p in topic.partitions) == list(range(partitions)), topic
    for partition in topic.partitions:
        index = partition.partition_index
        assert (partition.error_code, partition.leader_id) == (0, 1), topic
        end = client.list_offset(name, -1, partition=index).offset
        # At most the one record each creation writes into the first partition, and what we wrote here before.
        assert end == 0 or client.fetch(name, end - 1, partition=index).error_code == 0
    return True


def compare_directories(broker, churners) -> None:
    """Are the directories of the data exactly those of the partitions there are, and of deletions under way?"""
    expected = {f"{name}-{i}" for churner in churners for name, count in churner.there.items() for i in range(count)}
    found = {path.name for path in broker.log_dir.iterdir() if PARTITION_DIRECTORY.match(path.name)}
    assert {name for name in found if not name.endswith("-delete")} - {"__cluster_metadata-0"} == expected


def run(victim, chance, kills: int) -> None:
    """Kill, start, compare; so many times."""
    broker = victim()
    broker.start()
    acks = Acks()
    churners = [TopicChurner(i, broker.port, random.Random(chance.random()), acks) for i in range(CLIENTS)]
    for churner in churners:
        churner.start()
    try:
        for _ in range(kills):
            acks.wait_for_more(chance.randrange(1, 60))
            broker.kill()
            with churners[0].turn, churners[1].turn, churners[2].turn:
                if chance.random() < 0.4:
                    broker.start_and_kill(chance.uniform(0.2, 0.9))
                broker.start()
                for churner in churners:
                    churner.compare(broker.port)
                compare_directories(broker, churners)
    finally:
        for churner in churners:
            churner.ending.set()
        for churner in churners:
            churner.join()
    for churner in churners:
        churner.end()
    print(f"{kills} kills, {acks.count} topics created or deleted, {sum(len(c.there) for c in churners)} there")
    assert broker.bugs() == []
    assert broker.said("damage_found") + broker.said("partition_offline") == []
    broker.stop()


def test_kills_while_topics_change(victim, chance):
    """Is every topic whole or absent after each kill, as its client was told?"""
    run(victim, chance, KILLS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_kills_while_topics_change(victim, chance):
    """The same, for longer: does it hold?"""
    run(victim, chance, KILLS_LONG)


def test_recreated_topic_after_a_crash(tmp_path):
    """Does a crash give a new topic nothing of the checkpoints of an earlier one of its name (A29)?"""
    running, crashed = tmp_path / "running", tmp_path / "crashed"
    with Cluster(directory=running) as cluster, WireClient(cluster.port) as client:
        client.create_topic("topic")
        for number in range(10):
            assert client.produce("topic", batch_of(b"old %d" % number)).base_offset == number
        partition = DeleteRecordsPartition(partition_index=0, offset=8)
        topic = DeleteRecordsTopic(name="topic", partitions=(partition,))
        client.ask("DeleteRecords", 2, DeleteRecordsRequest(topics=(topic,), timeout_ms=5_000))
        cluster.call(cluster.broker.housekeeping.checkpoint())
        client.delete_topic("topic")
        assert client.create_topic("topic").error_code == 0
        for number in range(3):
            assert client.produce("topic", batch_of(b"new %d" % number)).base_offset == number
        # What a kill would leave.
        shutil.copytree(running, crashed)
    with Cluster(directory=crashed) as cluster, WireClient(cluster.port) as client:
        start, end = (client.list_offset("topic", which).offset for which in (-2, -1))
        values = [r.value for _, batch in batches_from(client, ("topic", 0), start) for r in records_of(batch)]

    assert (start, end) == (0, 3)
    assert values == [b"new 0", b"new 1", b"new 2"]


def batch_of(value: bytes) -> bytes:
    """One record."""
    return bytes(build_batch([NewRecord(1, None, value, ())]))
