"""Consume, transform, produce: with workers and brokers that die, every input is in the output exactly once."""

import os
from itertools import cycle

import pytest

from crash.exactly_once import BROKER_SETTINGS, ExactlyOnce
from headrace.testing.broker_process import BrokerProcess
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable, kafka_jars
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.slow, pytest.mark.clients]

TRANSACTIONS = int(os.environ.get("HEADRACE_TRANSACTIONS", "180"))
TRANSACTIONS_LONG = int(os.environ.get("HEADRACE_TRANSACTIONS", "10000"))
"""At least so many over the tests of a run; deliberate aborts and small batches make it more."""
BETWEEN_FAULTS = 40
FAULTS = ("worker", "worker", "broker", "worker", "end")
DELAYED = ("EndTxn", "Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "InitProducerId")
DELAYS_S = (0.05, 0.3, 1.0)


def run(broker: BrokerProcess, place, chance, *, transactions: int, protocol: str) -> None:
    """A copy job with a fault every few dozen transactions; then the account."""
    job = ExactlyOnce(broker.bootstrap, place, chance, transactions=transactions, protocol=protocol)
    broker_kills = 0
    faults = cycle(FAULTS)
    with job:
        # The workers may be done before all of it happened, where this process has to wait for its turn.
        while not job.is_done() or not broker_kills or not job.counts["killed"]:
            job.wait_for_commits(chance.randrange(BETWEEN_FAULTS))
            fault = next(faults)
            print(f"{job.committed()} committed: {fault}")
            if fault == "broker":
                broker.kill()
                broker.start()
                broker_kills += 1
            elif fault == "end":
                job.end_worker()
            else:
                job.kill_worker()
        job.settle()
        print(job.account(), f"{broker_kills} broker kills")
    assert job.counts["killed"]
    assert broker_kills


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_exactly_once(victim, tmp_path, chance, protocol):
    """Is every input in the output exactly once, none torn and none hanging, while workers and broker are killed?"""
    broker = victim(**BROKER_SETTINGS)
    broker.start()
    run(broker, tmp_path, chance, transactions=TRANSACTIONS // 3, protocol=protocol)
    assert broker.bugs() == []
    broker.stop()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_long_exactly_once(victim, tmp_path, chance, protocol):
    """The same for ten thousand transactions: does it hold?"""
    broker = victim(**BROKER_SETTINGS)
    broker.start()
    run(broker, tmp_path, chance, transactions=TRANSACTIONS_LONG // 2, protocol=protocol)
    assert broker.bugs() == []
    broker.stop()


def run_delayed(tmp_path, chance, *, transactions: int) -> None:
    """A copy job whose requests come late, are lost or lose their answer, with workers that die meanwhile."""
    with Cluster(BROKER_SETTINGS) as cluster:
        job = ExactlyOnce(cluster.bootstrap, tmp_path, chance, transactions=transactions)
        with job:
            while not job.is_done():
                job.wait_for_commits(chance.randrange(BETWEEN_FAULTS // 2))
                api = chance.choice(DELAYED)
                kind = chance.choice(("delay", "delay", "refuse"))
                delay_s = chance.choice(DELAYS_S)
                cluster.fail_next(api, kind, delay_s=delay_s, times=chance.randint(1, 4))
                if chance.random() < 0.4:
                    job.kill_worker()
            cluster.ask(lambda broker: broker.faults.clear())
            job.settle()
            print(job.account())


def test_exactly_once_with_delays(tmp_path, chance):
    """Does it hold when EndTxn, Produce and the others come late, after their worker was killed and fenced?"""
    run_delayed(tmp_path, chance, transactions=TRANSACTIONS // 3)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_exactly_once_with_delays(tmp_path, chance):
    """The same for ten thousand transactions: does it hold?"""
    run_delayed(tmp_path, chance, transactions=TRANSACTIONS_LONG)


@pytest.mark.long
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_exactly_once_of_kafka(tmp_path, chance, protocol):
    """Does Apache Kafka pass what Headrace has to pass, so that a failure is the broker's and not the test's?"""
    try:
        kafka_jars()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    with KafkaPeer(tmp_path / "kafka", settings={**BROKER_SETTINGS, "broker.session.timeout.ms": "2000"}) as broker:
        run(broker, tmp_path, chance, transactions=TRANSACTIONS // 3, protocol=protocol)
