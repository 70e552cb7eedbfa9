"""Driver, workers and broker are killed while a topic is copied: readers of committed records see each record once."""

import os
import random
import time

import pytest

from clients.quick_groups import QUICK_GROUPS
from headrace.spark.java import NoJava, find_java
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer
from seeds import chance_for
from spark.copy_job import CopyJob

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SETTINGS = {**QUICK_GROUPS, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
STEPS = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "Produce",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "OffsetCommit",
    "EndTxn",
)
"""What a batch is made of, in this order."""
MANNERS = ("delay", "drop_reply", "refuse")
"""The request in question comes late, or its answer never, or it never arrived."""
KILLS = int(os.environ.get("HEADRACE_KILLS", "60"))


@pytest.fixture(autouse=True)
def _java():
    try:
        find_java()
    except NoJava as missing:
        pytest.skip(str(missing))


@pytest.fixture
def chance(request) -> random.Random:
    """The luck of this test."""
    return chance_for(request.node.name, campaign=request.node.get_closest_marker("long") is not None)


def kill_in_the_middle(cluster: Cluster, job: CopyJob, chance: random.Random, step: str, manner: str, who: str) -> None:
    """Kill somebody at the moment a certain request of a batch has reached the broker and is not answered."""
    job.wait_for_batches(1)
    if job.is_done():
        return
    cluster.fail_next(step, manner, delay_s=1.0)
    job.wait(lambda: job.is_done() or not cluster.ask(lambda broker: broker.faults.armed), f"no {step} came")
    if who == "driver":
        job.kill_driver()
    else:
        job.kill_worker(chance)
    print(f"{who} killed at {step} ({manner}) after {job.batches()} batches")


def run_targeted(tmp_path, chance, deaths, *, records) -> None:
    """A copy job with these deaths, one after the other; then the account."""
    with Cluster(SETTINGS) as cluster, CopyJob(cluster.bootstrap, tmp_path, records=records) as job:
        for step, manner, who in deaths:
            kill_in_the_middle(cluster, job, chance, step, manner, who)
        cluster.ask(lambda broker: broker.faults.clear())
        job.settle()
        print(job.account())
    assert job.counts["driver"]


@pytest.mark.long
def test_killed_while_committing(tmp_path, chance):
    """The driver dies before, in and after its decision, workers while they write: is every record there once? (R31)"""
    deaths = [
        ("EndTxn", "delay", "driver"),
        ("Produce", "drop_reply", "worker"),
        ("TxnOffsetCommit", "drop_reply", "driver"),
    ]
    run_targeted(tmp_path, chance, deaths, records=1200)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_killed_at_every_step(tmp_path, chance):
    """The same at every request of a batch, in every manner: does it hold?"""
    deaths = [(step, manner, who) for step in STEPS for manner in MANNERS for who in ("driver", "worker")]
    chance.shuffle(deaths)
    chosen = deaths[:KILLS]
    run_targeted(tmp_path, chance, chosen, records=400 * len(chosen))


def run_random(broker, tmp_path, chance, kills, *, records) -> None:
    """A copy job with kills at any moment of any batch; then the account."""
    with CopyJob(broker.bootstrap, tmp_path, records=records, rows_per_batch=100) as job:
        for who in kills:
            job.wait_for_batches(chance.randint(1, 2))
            if job.is_done():
                break
            # Any moment of the batch that is being written now.
            time.sleep(chance.random() * 0.5)
            print(f"{job.batches()} batches: {who}")
            if who == "broker":
                broker.kill()
                broker.start()
                job.counts["broker"] += 1
            elif who == "driver":
                job.kill_driver()
            else:
                job.kill_worker(chance)
        job.settle()
        print(job.account())
    assert job.counts["broker"]
    assert job.counts["driver"]


def test_killed_at_any_moment(tmp_path, chance):
    """Broker, driver and workers die at moments that luck chooses: is every record there once, keys in order?"""
    with HeadraceProcess(tmp_path / "broker", settings=SETTINGS) as broker:
        run_random(broker, tmp_path, chance, ("broker", "worker", "driver"), records=1200)


@pytest.mark.long
@pytest.mark.java
def test_killed_at_any_moment_on_kafka(tmp_path, chance):
    """The same with Apache Kafka as the broker: is it our sink that holds, and not our broker that forgives?"""
    try:
        peer = KafkaPeer(tmp_path / "peer", settings={**SETTINGS, "broker.session.timeout.ms": "2000"})
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    try:
        run_random(peer, tmp_path, chance, ("worker", "driver", "broker", "driver"), records=2000)
    finally:
        peer.remove()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_killed_at_any_moment(tmp_path, chance):
    """The same with dozens of kills: does it hold?"""
    kills = [chance.choice(("broker", "driver", "worker", "worker")) for _ in range(KILLS)]
    with HeadraceProcess(tmp_path / "broker", settings=SETTINGS) as broker:
        run_random(broker, tmp_path, chance, ["broker", "driver", *kills], records=300 * KILLS)


@pytest.mark.long
def test_too_late(tmp_path, chance):
    """A query was down for longer than its decided transactions could wait: is what they lost written again, once?"""
    with Cluster(SETTINGS) as cluster, CopyJob(cluster.bootstrap, tmp_path, records=1500) as job:
        for _ in range(2):
            job.wait_for_batches(1)
            # The decision is made; the driver does not live to commit more than the first transaction.
            cluster.fail_next("EndTxn", "delay", delay_s=0.0)
            cluster.fail_next("EndTxn", "drop")
            job.wait(lambda: not cluster.ask(lambda broker: broker.faults.armed), "no EndTxn came")
            job.kill_driver()
            job.fence()
            assert job.seen() not in job.ends(), "a batch was to be committed in part"
        job.settle()
        print(job.account())
