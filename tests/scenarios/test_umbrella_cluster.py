"""A cluster of several brokers as a person has it: started, grown, evened out, shrunk, stopped, started again."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter

import pytest
from tests.scenarios.test_umbrella import Person

from caught_up import caught_up
from crash.cluster_load import ClusterProducer, ClusterReader
from crash.load import Acks
from headrace.cli import drain_broker, partition_moves, rebalance
from headrace.cli.local_cluster import LocalCluster, NoPortFree, free_ports
from headrace.coordination.quorum.applier import Applier
from headrace.testing import Cluster
from headrace.testing.history import check
from headrace.testing.ports import free_port
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from wire_client import WireClient

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def room_for_nodes(count):
    """A port from which on there is room for so many nodes, somewhere nobody else looks for it."""
    while True:
        first = free_port()
        with contextlib.suppress(NoPortFree):
            if free_ports(count, first=first) == list(range(first, first + 2 * count, 2)):
                return first


@pytest.fixture
def person(tmp_path):
    """A person in an empty directory; what they leave running is killed."""
    person = Person(tmp_path, room_for_nodes(5))
    yield person
    person.environment["SIGNAL"] = "KILL"
    person.types("server", "stop")


def nodes(person):
    """What `status` says: the exit code, and status and process of each node."""
    done = person.types("status", "--output", "json")
    return done.returncode, {one["nodeId"]: (one["status"], one["pid"]) for one in json.loads(done.stdout)["nodes"]}


@posix
@pytest.mark.slow
def test_life_of_a_cluster(person, tmp_path):
    """R3: Can a cluster be started, survive a kill, grow, be evened out, shrink, and be started again with its data?"""
    started = person.types("start", "-n", "3", "--port", str(person.port), "--data", "here")
    assert started.returncode == 0, started.stderr
    lines = [line.split() for line in started.stdout.splitlines()]
    assert lines[1] == ["1", "running", f"localhost:{person.port}", "here/node-1/data"]
    assert lines[3] == ["3", "running", f"localhost:{person.port + 4}", "here/node-3/data"]
    assert person.types("topics", "create", "events", "-p", "4").returncode == 0
    described = json.loads(person.types("topics", "describe", "events", "--output", "json").stdout)
    assert {len(one["replicas"]) for one in described[0]["partitions"]} == {3}
    # A broker of a cluster is killed the hard way, and comes back with the same command.
    os.kill(nodes(person)[1][3][1], signal.SIGKILL)
    code, found = nodes(person)
    assert (code, [status for status, _ in found.values()]) == (1, ["running", "running", "stopped"])
    assert person.types("start", "-n", "3", "--data", "here").returncode == 0
    assert person.types("health", "--exit-when-healthy", "--timeout", "60").returncode == 0

    added = person.types("add-broker")
    assert (added.returncode, added.stdout.splitlines()[4].split()[:2]) == (0, ["4", "running"])
    evened = person.types("rebalance", "--output", "json")
    assert [one["partitions"] for one in json.loads(evened.stdout)["brokers"]] == [3, 3, 3, 3]
    drained = person.types("drain-broker", "4", "--throttle", "10000000")
    assert drained.returncode == 0, drained.stderr
    assert "Headrace: 3 of 3 partitions have moved\n" in drained.stderr
    assert drained.stdout.splitlines()[-1].startswith("Broker 4 is no longer registered")
    assert nodes(person)[0] == 0
    assert len(nodes(person)[1]) == 3

    stopped = person.types("stop")
    assert (stopped.returncode, stopped.stdout.count("Stopped node")) == (0, 3)
    assert not (tmp_path / "home/profiles/default.properties").exists()
    again = person.types("start", "--data", "here")
    assert (again.returncode, len(again.stdout.splitlines())) == (0, len(started.stdout.splitlines()))
    assert person.types("topics", "list").stdout == "events\n"


@posix
def test_refusals(person, tmp_path):
    """Is what cannot be refused in a sentence with a way out, before anything is started?"""
    for words, sentence in (
        (("add-broker",), "No cluster runs here that `headrace start -n` started."),
        (("start", "-n", "0"), "A cluster on one machine has 1 to 100 nodes"),
        (("drain-broker",), "The id of the broker is missing"),
        (("drain-broker", "x"), "'x' is not the id of a broker"),
        (("rebalance", "--throttle", "0"), "A throttle is a number of bytes per second, at least 1"),
    ):
        done = person.types(*words)
        assert (done.returncode, done.stderr.splitlines()[0]) == (1, sentence)
    (tmp_path / "single").mkdir()
    (tmp_path / "single/meta.properties").write_text("")
    done = person.types("start", "-n", "3", "--data", "single")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "single holds the data of a single node.")
    assert person.types("status").returncode == 1


@posix
def test_a_node_that_cannot_start_is_told(person, tmp_path):
    """If one node ends at once, does `start` say which and why, and leave none of the others behind?"""
    LocalCluster(tmp_path / "here").make(free_ports(3, first=person.port))
    (tmp_path / "here/node-2/data/meta.properties").write_text("version=1\ncluster.id=other\nnode.id=9\n")
    done = person.types("start", "--data", "here")

    assert (done.returncode, done.stdout) == (1, "")
    assert "Node 2 ended before it served:\n" in done.stderr
    assert person.types("status").returncode == 1


# --- the tools, against brokers in this process


@pytest.fixture(scope="module")
def four():
    """Four brokers; the fourth has nothing."""
    with Cluster({"auto.leader.rebalance.enable": "false"}, brokers=4) as cluster:
        yield cluster


@pytest.fixture
def ask(four, capsys):
    """Runs a command against the four; gives its exit code and what it printed."""

    def run(module, *arguments):
        # It may ask any of them, also what another one was told just now.
        four.call(caught_up(four.brokers.values()))
        code = module.main([*arguments, "--bootstrap-server", four.bootstrap], module.TOOL.name)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def create(cluster, name, *assignments):
    """Make a topic with replicas where they are wanted."""
    topic = CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(assignments)
        ),
    )
    with WireClient(cluster.port) as client:
        (result,) = client.ask("CreateTopics", 7, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)).topics
    assert result.error_code == 0, result.error_message


def placed(cluster):
    """Replicas and leaders of every partition."""
    found = cluster.ask(
        lambda broker: {
            (topic.name, index): (tuple(partition.replicas), partition.leader)
            for topic in broker.metadata.topics.values()
            for index, partition in enumerate(topic.partitions)
        },
        node=cluster.controller,
    )
    return dict(sorted(found.items()))


def test_rebalance_and_drain(ask, four):
    """Is a dry run only a word, does a rebalance even out replicas and leaders, and a drain leave nothing?"""
    create(four, "a", (1, 2), (1, 2), (1, 2), (1, 3))
    before = placed(four)
    code, out, err = ask(rebalance, "--dry-run")
    assert (code, err, placed(four)) == (0, "", before)
    assert out.splitlines()[0] == "2 partitions would move, 2 would stay."

    code, out, err = ask(rebalance)
    after = placed(four)
    assert code == 0, out
    assert (out.splitlines()[0], err.splitlines()[-1]) == (
        "2 partitions moved, 2 stayed.",
        "Headrace: 2 of 2 partitions have moved",
    )
    assert 2 == sum({*before[place][0]} != {*after[place][0]} for place in before)
    assert sorted(broker for replicas, _ in after.values() for broker in replicas) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert sorted(leader for _, leader in after.values()) == [1, 2, 3, 4]
    assert all(leader == replicas[0] for replicas, leader in after.values())
    assert ask(rebalance)[1].startswith("0 partitions moved, 4 stayed.\n")

    code, out, err = ask(drain_broker, "4")
    assert (code, err.splitlines()[-1]) == (0, "Headrace: 2 of 2 partitions have moved")
    assert out.splitlines() == [
        "Broker 4 has no partitions any more; 2 moved to others.",
        "When you have stopped it: kafka-cluster unregister --id 4",
    ]
    assert 4 not in {broker for replicas, _ in placed(four).values() for broker in replicas}


def test_drain_by_way_of_a_broker_that_lags(four, monkeypatch, capsys):
    """Is a drain done when it is, though the broker that is asked hears of each decision half a second later?"""
    controller = four.controller
    asked = next(node for node in four.nodes if node != controller)
    applier, committed = four.brokers[asked].quorum._applier, Applier.committed

    def later(self, offset):
        if self is applier:
            asyncio.get_running_loop().call_later(0.5, committed, self, offset)
        else:
            committed(self, offset)

    create(four, "late", (4, 1, 2))
    four.call(caught_up(four.brokers.values()))
    monkeypatch.setattr(Applier, "committed", later)
    code = drain_broker.main(["4", "--bootstrap-server", four.address(asked)], drain_broker.TOOL.name)
    with WireClient(four.port) as client:
        client.delete_topic("late")

    assert code == 0, capsys.readouterr()
    assert "Broker 4 has no partitions any more; 1 moved to others.\n" in capsys.readouterr().out


@posix
def test_moves_that_are_interrupted(ask, four, monkeypatch, capsys):
    """Is a person who stops watching told that the moves go on, and is the throttle lifted?"""
    watch = partition_moves._watch

    async def interrupted(*arguments):
        await watch(*arguments)  # Lest the next test finds partitions on their way.
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    create(four, "watched", (4, 1), (4, 2))
    monkeypatch.setattr(partition_moves, "_watch", interrupted)
    # A shell that starts a program in the background has it ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(drain_broker, "4", "--throttle", "1000000")
    finally:
        signal.signal(signal.SIGINT, before)
        with WireClient(four.port) as client:
            client.delete_topic("watched")
    out, err = capsys.readouterr()

    assert "The cluster goes on with the moves it was told to make, without a throttle;" in err
    assert out.splitlines()[-1].startswith("Clearing topic-level throttles on topic")


@pytest.mark.slow
@pytest.mark.clients
def test_broker_that_comes_and_goes_under_load(capsys):
    """R3: Does a new broker take a fourth of what is written, and give it back, with nothing refused or lost?"""
    acks = Acks()
    places = [("busy", index) for index in range(8)]
    with Cluster(brokers=4) as cluster:
        cluster.stop_node(4)
        create(cluster, "busy", *[(index % 3 + 1, (index + 1) % 3 + 1) for index in range(len(places))])
        producer = ClusterProducer("writer", cluster.bootstrap, places, random.Random(1), acks)
        reader = ClusterReader("reader", cluster.bootstrap, places)
        producer.start()
        reader.start()
        acks.wait_for_more(200)
        cluster.restart(4)
        acks.wait_for_more(200)
        evened = rebalance.main(["--bootstrap-server", cluster.bootstrap], rebalance.TOOL.name)
        acks.wait_for_more(200)
        after = placed(cluster)
        drained = drain_broker.main(["4", "--bootstrap-server", cluster.bootstrap], drain_broker.TOOL.name)
        acks.wait_for_more(200)
        producer.end()
        rest = {broker for replicas, _ in placed(cluster).values() for broker in replicas}
        ends = Counter((send.payload.topic, send.payload.partition) for send in producer.sends)
        reader.read_to(dict(ends))

    assert (evened, drained) == (0, 0), capsys.readouterr()
    assert producer.failures == []
    assert check(producer.sends, reader.polls, idempotent={"writer"}, dense=True) == []
    held = Counter(broker for replicas, _ in after.values() for broker in replicas)
    led = Counter(leader for _, leader in after.values())
    for shares in (held, led):
        assert sorted(shares) == [1, 2, 3, 4]
        assert max(shares.values()) - min(shares.values()) <= 1, shares
    assert rest == {1, 2, 3}


def test_drain_that_cannot_be(ask, four):
    """Is a broker without which a partition would have too few places refused, and one that is not there?"""
    create(four, "everywhere", (1, 2, 3, 4))
    code, out, err = ask(drain_broker, "3")

    assert (code, out) == (1, "")
    assert err.splitlines()[0] == (
        "Broker 3 cannot be drained: every other broker has a replica already of everywhere-0."
    )
    assert ask(drain_broker, "9")[2].splitlines()[0] == "There is no broker 9."
    with WireClient(four.port) as client:
        client.delete_topic("everywhere")
