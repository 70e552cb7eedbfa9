"""Apache Kafka reads what a quorum writes, and takes part in one: its controller observes, then votes."""

import asyncio
import re
import socket
import subprocess

import pytest

from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.cores.controller import Outcome
from headrace.cores.raft.messages import DescribeQuorumRequest
from headrace.cores.raft.voters import Endpoint, ReplicaKey
from headrace.model.metadata_records import FeatureLevelRecord
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import read_meta
from headrace.testing.java_runner import SMALL_JVM, JavaRunner
from headrace.testing.kafka_jars import PeerUnavailable, classpath, java_command
from quorum_nodes import CLUSTER, HOST, METADATA_LOG, Nodes, dynamic_voters, join

pytestmark = [pytest.mark.java, pytest.mark.slow]

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def java():
    """Kafka's tools, ready to run."""
    try:
        runner = JavaRunner()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    with runner:
        yield runner


@pytest.fixture(scope="module")
def written(java, tmp_path_factory):
    """The metadata directory of a quorum whose log names its voters, with a log and a snapshot."""
    place = tmp_path_factory.mktemp("quorum")

    async def scene():
        async with Nodes(1, lambda _: RealFiles(), lambda n: str(place / f"node-{n}")) as nodes:
            log_dir, log = nodes[1].open_log()
            SnapshotFiles(log_dir.files, log.path).write_bootstrap(dynamic_voters([nodes[1]]), now_ms=0)
            log_dir.close(0)
            await nodes[1].start(None)
            await nodes.create("one", "two")
            await nodes[1].quorum.snapshot()
            await nodes.create("three")
            await nodes[1].stop()

    asyncio.run(scene())
    return place / "node-1" / METADATA_LOG


def dumped(java, files):
    """What kafka-dump-log makes of files."""
    return java.check(DUMP, "--cluster-metadata-decoder", "--files", ",".join(map(str, files)), timeout_s=120).out


def test_the_log(written, java):
    """Does kafka-dump-log read every batch of the log, the leader change, the voters and the topics?"""
    output = dumped(java, sorted(written.glob("*.log")))

    assert "isvalid: false" not in output
    assert "Could not decode" not in output
    assert re.search(r'LeaderChange: \{"version":0,"leaderId":1,"voters":\[\{"voterId":1', output)
    assert re.search(r'KRaftVersion \{"version":0,"kRaftVersion":1\}', output)
    assert re.search(r'KRaftVoters \{"version":0,"voters":\[\{"voterId":1,.*"name":"CONTROLLER"', output)
    assert ["one", "two", "three"] == re.findall(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"(\w+)"', output)


def test_the_snapshot(written, java):
    """Does kafka-dump-log read the snapshot from header to footer, with the voters and the topics?"""
    snapshots = sorted(path for path in written.glob("*.checkpoint") if not path.name.startswith("0" * 20))
    output = dumped(java, snapshots)

    assert 1 == len(snapshots)
    assert "isvalid: false" not in output
    assert "Could not decode" not in output
    assert re.search(r'SnapshotHeader \{"version":0,"lastContainedLogTimestamp":1\d{12}\}', output)
    assert re.search(r'SnapshotFooter \{"version":0\}', output)
    assert re.search(r'KRaftVoters \{"version":0,"voters":\[\{"voterId":1', output)
    assert ["one", "two"] == re.findall(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"(\w+)"', output)


class KafkaController:
    """Apache Kafka as a controller that belongs to a quorum of ours."""

    def __init__(self, place, server):
        self.directory = place / "logs"
        self._properties = place / "kafka.properties"
        self._output = place / "kafka.out"
        with socket.create_server((HOST, 0)) as taken:
            self.port = taken.getsockname()[1]
        settings = {
            "process.roles": "controller",
            "node.id": 7,
            "controller.quorum.bootstrap.servers": server,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{HOST}:{self.port}",
            "advertised.listeners": f"CONTROLLER://{HOST}:{self.port}",
            "log.dirs": self.directory,
        }
        place.mkdir()
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._process = None

    def format(self, java):
        """Format its directory for our cluster, and tell who it is."""
        java.check(
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={CLUSTER}",
            "--config",
            self._properties,
            "--no-initial-controllers",
            "--release-version",
            "4.0-IV3",
        )
        meta = read_meta(RealFiles(), str(self.directory))
        return ReplicaKey(meta.node_id, meta.directory_id)

    def __enter__(self):
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [java_command(), *SMALL_JVM, "-cp", classpath(), "kafka.Kafka", str(self._properties)],
                stdout=output,
                stderr=output,
            )
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)


def test_kafka_votes_in_our_quorum(java, tmp_path):
    """Does Kafka's controller get our snapshot and log, byte by byte, and are decisions committed with its help?"""

    async def scene():
        async with Nodes(1, lambda _: RealFiles(), lambda n: str(tmp_path / f"node-{n}")) as nodes:
            leader = nodes[1]
            log_dir, log = leader.open_log()
            SnapshotFiles(log_dir.files, log.path).write_bootstrap(dynamic_voters([leader]), now_ms=0)
            log_dir.close(0)
            # A JVM that starts on a busy machine must not cost the lead.
            patient = {"fetch_timeout_ms": 120_000, "election_timeout_ms": 120_000}
            await leader.start(None, core=patient, snapshots=SnapshotPolicy(retention_bytes=-1, retention_ms=-1))
            level = FeatureLevelRecord(name="metadata.version", feature_level=25)
            await nodes.run(lambda metadata: Outcome([level], None))
            await nodes.create(*(f"topic-{n}" for n in range(50)))
            await leader.quorum.snapshot()
            await nodes.create("behind-the-snapshot")
            kafka = KafkaController(tmp_path / "kafka", f"{HOST}:{leader.port}")
            key = await asyncio.to_thread(kafka.format, java)
            with kafka:
                await join(leader, key, Endpoint("CONTROLLER", HOST, kafka.port))
                await nodes.create(*(f"by-both-{n}" for n in range(20)))
                described = await leader.quorum.handle(DescribeQuorumRequest())
                ours = leader.quorum._log.find(0, 1 << 30).load()
            return kafka, described, ours

    kafka, described, ours = asyncio.run(scene())

    metadata = kafka.directory / METADATA_LOG
    assert {1, 7} == {status.key.id for status in described.voters}
    (snapshot,) = metadata.glob("*.checkpoint")
    assert snapshot.read_bytes() == (tmp_path / "node-1" / METADATA_LOG / snapshot.name).read_bytes()
    (segment,) = metadata.glob("*.log")
    theirs = segment.read_bytes()
    assert int(segment.name[:20]) > 0
    assert ours.endswith(theirs)
    assert b"by-both-19" in theirs
