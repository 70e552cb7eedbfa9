"""The measurements of clusters: what is chosen, and a tiny form of each on real processes."""

from types import SimpleNamespace

import pytest
from bench import cluster_plan, plan
from bench.__main__ import BROKER, CLUSTER_PAGE, PARTS, _parse, _run_rounds
from bench.cluster_process import NODES, ClusterProcess
from bench.cluster_workloads import (
    CONTROLLER_KILLED,
    LEADER_KILLED,
    LEADER_STOPPED,
    Loss,
    measure_cluster_footprint,
    percentile,
)
from bench.load import JavaLoad
from bench.seats import HEADRACE, HEADRACE_FLUSH, KAFKA, KAFKA_FLUSH, Seat, _seats_of
from bench.table import BEGIN, END, Results
from bench.workloads import Produce

from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer


def test_clusters_are_measured_only_if_they_are_named():
    """Do `cluster` and `--only cluster` choose the clusters' workloads, and does nothing else?"""
    for words in (["cluster"], ["--only", "cluster"], ["cluster produce", "--rounds", "7"]):
        choice = _parse(words)
        assert choice.cluster
        assert PARTS[cluster_plan.CLUSTER] is choice.part
    assert (7, 2) == (choice.rounds, _parse(["cluster"]).rounds)
    for words in ([], ["--only", "produce"], ["spark"]):
        assert not _parse(words).cluster
    assert BROKER is _parse(["latency"]).part
    assert not [work.name for work in plan.workloads(quick=True) if "cluster" in work.name.lower()]


def test_every_workload_has_a_target():
    """Is each workload of clusters judged by a target, and chosen by the word that asks for all of them?"""
    names = [work.name for work in cluster_plan.cluster_workloads(quick=True)]

    wanted = list(dict.fromkeys(workload for workload, _ in cluster_plan.CLUSTER_TARGETS))
    assert [cluster_plan.FOOTPRINT, *names] == wanted
    assert all(_parse(["cluster"]).wants(name) for name in wanted)
    assert not _parse(["cluster produce"]).wants(cluster_plan.FOOTPRINT)


@pytest.mark.parametrize(("work_s", "expected"), [(50, ["work", "loss", "work"]), (100, ["work", "loss"])])
def test_losses_are_measured_once(monkeypatch, work_s, expected):
    """Is a node lost only in the first round, and does the time that takes not keep the others from theirs?"""
    told, clock = [], SimpleNamespace(now_s=0.0)

    def taking(name, seconds):
        def measure(*_):
            told.append(name)
            clock.now_s += seconds
            return {"s": 1.0}

        return measure

    monkeypatch.setattr("bench.__main__.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(Loss, "measure", taking("loss", 350))
    work = SimpleNamespace(name="work", depends_on_flush=False, measure=taking("work", work_s))
    loss = Loss(name="loss", kind=LEADER_KILLED, times=1)
    seat = Seat(name=HEADRACE, broker=None, flushes=False)

    _run_rounds(_parse(["cluster"]), Results(), [work, loss], [seat], None, begin=0.0)

    assert expected == told


def test_page():
    """Has the page a place for the table?"""
    text = CLUSTER_PAGE.read_text()

    assert text.index(BEGIN) < text.index(END)
    assert all(f"`{name}={value}`" in text for name, value in cluster_plan.SETTINGS.items())


def test_percentiles():
    """Are they the values that so large a part does not exceed, also of few?"""
    values = [float(number) for number in range(100, 0, -1)]

    assert (50.0, 99.0) == (percentile(values, 0.5), percentile(values, 0.99))
    assert (2.0, 3.0) == (percentile([3.0, 1.0, 2.0], 0.5), percentile([3.0, 1.0, 2.0], 0.99))


@pytest.mark.parametrize(
    ("make", "names"), [(HeadraceProcess, [HEADRACE, HEADRACE_FLUSH]), (KafkaPeer, [KAFKA, KAFKA_FLUSH])]
)
def test_nodes_know_each_other(tmp_path, make, names):
    """Has each node its own id and ports, and the same voters, and does a cluster sit where its brokers would?"""
    cluster = ClusterProcess(make, tmp_path, settings={"broker.session.timeout.ms": "2000"})
    said = [_settings(broker.properties) for broker in cluster.nodes.values()]

    assert [str(node) for node in NODES] == [one["node.id"] for one in said]
    assert 1 == len({one["controller.quorum.voters"] for one in said})
    assert len(NODES) == len({one["listeners"] for one in said})
    assert all(one["controller.quorum.voters"].count("@") == len(NODES) for one in said)
    assert {("3", "2", "2000")} == {
        (one["default.replication.factor"], one["min.insync.replicas"], one["broker.session.timeout.ms"])
        for one in said
    }
    assert cluster.bootstrap == ",".join(f"127.0.0.1:{broker.port}" for broker in cluster.nodes.values())
    assert names == [seat.name for seat in _seats_of(cluster)]


def _settings(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


@pytest.fixture(scope="module")
def load():
    """Kafka's clients and our programs on them, ready to run."""
    try:
        made = JavaLoad()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    yield made
    made.close()


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.heavy
def test_tiny_form(tmp_path, load):
    """Can a cluster be measured from its first topic to the loss of each kind of node, and are all nodes back then?"""
    cluster = ClusterProcess(HeadraceProcess, tmp_path, settings=cluster_plan.SETTINGS)
    seat = Seat(name=HEADRACE, broker=cluster, flushes=False, topic_settings={"flush.on.acks.all": "false"})
    try:
        cluster.format()
        cluster.start()
        load.create_first_topic(cluster.bootstrap, "first")
        produced = Produce(name="tiny", records=1000, flushed_records=1000, record_bytes=100).measure(seat, load)
        stalls = {
            kind: Loss(name="tiny", kind=kind, times=1).measure(seat, load)
            for kind in (LEADER_KILLED, CONTROLLER_KILLED, LEADER_STOPPED)
        }
        pids = cluster.pids
    finally:
        cluster.remove()

    assert produced["records/s"] > 0
    assert all(0 < numbers["p50 ms"] <= numbers["p99 ms"] for numbers in stalls.values()), stalls
    # A killed leader is missed for as long as nobody hears of it, one that takes its leave is not.
    assert stalls[LEADER_KILLED]["p99 ms"] > 10
    assert len(NODES) == len(pids.split(","))


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.heavy
def test_tiny_footprint(tmp_path, load):
    """Is a new cluster's memory that of three processes, and are they gone afterwards?"""
    made = []

    def make(*arguments, **named):
        made.append(HeadraceProcess(*arguments, **named))
        return made[-1]

    numbers = measure_cluster_footprint(make, tmp_path / "cluster", load, kills=0)

    assert {"ready s", "idle PSS MiB"} == set(numbers)
    assert 3 * 10 < numbers["idle PSS MiB"] < 3 * 200
    assert [False] * 3 == [broker.directory.exists() for broker in made]


def test_storage_tool_that_refuses(tmp_path):
    """Is it said why a node could not be formatted?"""
    broker = HeadraceProcess(tmp_path / "one")
    broker.format("AAAAAAAAAAAAAAAAAAAAAQ")

    with pytest.raises(Exception, match="already formatted"):
        broker.format("AAAAAAAAAAAAAAAAAAAAAQ")
