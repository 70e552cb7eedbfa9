"""`Cluster` itself: it comes up quickly, leaves nothing behind, and says what is wrong in one sentence."""

import gc
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.broker.listeners import CannotListen
from headrace.broker.store import WrongCluster
from headrace.model.errors import HeadraceError, StorageFault
from headrace.records.build import NewRecord, build_batch
from headrace.testing import Cluster
from wire_client import one_fetch

BATCH = bytes(build_batch([NewRecord(timestamp=1_700_000_000_000, value=b"v")]))


def open_files() -> set[str]:
    """What this process has open: files by name, sockets by kind."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{descriptor.name} {descriptor.readlink()}")
        except OSError:
            continue
    return found


def threads() -> set[str]:
    return {f"{thread.name} {thread.ident}" for thread in threading.enumerate()}


LIFE = """
import gc, socket
from headrace.testing import Cluster
from scenarios.test_cluster import BATCH, open_files, threads
from wire_client import WireClient

with Cluster():
    pass  # libuv has a pipe for signals that belongs to the process, from its first loop on
before = threads(), open_files()
for _ in range(3):
    with Cluster() as cluster:
        directory, port = cluster.directory, cluster.port
        with WireClient(port) as client:
            client.create_topic("t", partitions=3)
            client.produce("t", BATCH)
            client.fetch("t", 0)
    assert cluster.directory is None
    assert not directory.exists()
gc.collect()  # What only waits for the collector is not behind; what outlives it is.
print(threads() - before[0], open_files() - before[1])
try:
    socket.create_connection(("127.0.0.1", port))
except ConnectionRefusedError:
    print("free")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_leaves_nothing_behind():
    """After a stop, are there no threads, no open files or sockets, no directory, and is the port free again?

    In a process of its own: here, clients of other tests open and close what they need.
    """
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", LIFE],
        env={**os.environ, "PYTHONPATH": f"{tests}:{tests.parent / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    # On a busy machine a broker may have something to say of it on its standard error.
    assert (done.returncode, done.stdout) == (0, "set() set()\nfree\n"), done.stderr


def test_stops_under_clients(wire):
    """Does it stop at once though clients are connected and wait for answers?"""
    with Cluster() as cluster:
        client, idle = wire(cluster), wire(cluster)
        client.create_topic("t")
        client.send("Fetch", 12, one_fetch("t", 0, max_wait_ms=300_000))

    assert client.is_closed_by_broker()
    assert idle.is_closed_by_broker()


def test_side_by_side(wire):
    """Are two clusters in one process strangers to each other?"""
    with Cluster() as one, Cluster(node_id=7) as other:
        assert one.port != other.port
        assert one.broker.cluster_id != other.broker.cluster_id
        wire(one).create_topic("only-here")
        wire(one).produce("only-here", BATCH)

        assert wire(one).describe_topic("only-here").error_code == 0
        assert wire(other).describe_topic("only-here").error_code == 3
        assert other.broker.node_id == 7


def test_given_directory_is_kept(tmp_path, wire):
    """With a directory of one's own, is the data there afterwards, for the next cluster to find?"""
    with Cluster(directory=tmp_path) as first:
        wire(first).create_topic("kept")
        wire(first).produce("kept", BATCH)
        cluster_id = first.broker.cluster_id
    assert (tmp_path / "kept-0").is_dir()
    with Cluster(directory=tmp_path) as second:
        assert second.broker.cluster_id == cluster_id
        assert wire(second).list_offset("kept", -1).offset == 1
    assert (tmp_path / "kept-0").is_dir()


def test_settings_over_the_defaults(wire):
    """Do settings that are handed in count?"""
    with Cluster({"num.partitions": "3", "auto.create.topics.enable": "true"}) as cluster:
        assert len(wire(cluster).describe_topic("new", allow_creation=True).partitions) == 3


def test_restart_keeps_port_and_data(wire, cluster):
    """Is a restarted cluster found under the old address, with the old data, and new connections only?"""
    client = wire(cluster)
    client.create_topic("t")
    client.produce("t", BATCH)
    port = cluster.port

    cluster.restart()

    assert cluster.port == port
    assert client.is_closed_by_broker()
    assert wire(cluster).list_offset("t", -1).offset == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_port_taken(tmp_path):
    """Is a taken port told in one sentence with what to do, and is nothing left running or locked?"""
    before = threads()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster = Cluster({"listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"}, directory=tmp_path)
        with pytest.raises(CannotListen, match=rf"Listener PLAINTEXT cannot use 127\.0\.0\.1:{port}: .*\. Stop what"):
            cluster.start()
    cluster.stop()
    gc.collect()

    assert (threads() - before, [name for name in open_files() if str(tmp_path) in name]) == (set(), [])
    with Cluster(directory=tmp_path):
        pass


def test_directory_in_use(tmp_path):
    """Is a second broker on the same directory refused, without harm to the first?"""
    with Cluster(directory=tmp_path) as first:
        with pytest.raises(StorageFault, match="in use"):
            Cluster(directory=tmp_path).start()
        assert first.ask(lambda broker: broker.node_id) == 1


def test_failed_start_does_not_pass_for_a_clean_stop(tmp_path, wire):
    """When a start after a crash fails before the data was looked at, does the next start still recover (R15)?"""
    with Cluster(directory=tmp_path / "live") as cluster:
        wire(cluster).create_topic("t")
        wire(cluster).produce("t", BATCH)
        # What is on disk in the middle of everything is what a crash leaves.
        shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    with (tmp_path / "crashed/t-0/00000000000000000000.log").open("ab") as segment:
        segment.write(b"torn")

    with pytest.raises(WrongCluster, match=r"belongs to node 1, but node\.id is 2"):
        Cluster(directory=tmp_path / "crashed", node_id=2).start()

    with Cluster(directory=tmp_path / "crashed") as cluster:
        assert wire(cluster).produce("t", BATCH).base_offset == 1
        assert len(wire(cluster).fetch("t", 0).records) == 2 * len(BATCH)


def test_wrong_setting():
    """Is a setting that cannot be refused before anything starts?"""
    before = threads()
    with pytest.raises(HeadraceError):
        Cluster({"num.partitions": "many"}).start()

    assert threads() - before == set()


def test_question_that_fails(cluster):
    """Does an error inside a question come back to the test that asked?"""
    with pytest.raises(ZeroDivisionError):
        cluster.ask(lambda broker: broker.node_id // 0)


def test_unknown_fault_name(cluster):
    """Is a fault for an API that does not exist, or of a kind that does not, a mistake that is told?"""
    with pytest.raises(ValueError, match=r"Did you mean Produce\?"):
        cluster.fail_next("Prodcue")
    with pytest.raises(ValueError, match="There are: refuse, delay"):
        cluster.fail_next("Produce", "explode")


def test_state_of_the_process_is_left_alone():
    """Does a cluster leave signal handlers, working directory and limits of the test process as they are?"""

    def state():
        return (
            [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)],
            Path.cwd(),
            resource.getrlimit(resource.RLIMIT_NOFILE),
            dict(os.environ),
        )

    before = state()
    with Cluster():
        assert state() == before
    assert state() == before
