"""What the console's pages about the cluster load, from Headrace and from Apache Kafka."""

import asyncio
import time

import pytest

from headrace import KafkaAdmin, KafkaError, KafkaProducer, NewTopic
from headrace.console.data_brokers import load_broker, load_brokers, quorum_rows
from headrace.console.data_fleet import load_fleet
from headrace.console.data_pipelines import ProgressReader
from headrace.console.data_transactions import load_transaction, load_transactions
from headrace.gateway.services import Services
from headrace.gateway.v3_transactions import find_hanging
from headrace.settings.gateway import GatewayConfig
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

SMALL = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}


@pytest.fixture(scope="module", params=["headrace", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def cluster(request, tmp_path_factory):
    """One broker of each kind."""
    if request.param == "headrace":
        yield request.getfixturevalue("broker")
        return
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("console") / "kafka", settings=SMALL)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    yield peer
    peer.remove()


@pytest.fixture
def ask(cluster):
    """Runs a question on the gateway's services."""

    def run(question):
        async def asked():
            config = GatewayConfig({"bootstrap.servers": cluster.bootstrap})
            async with Services(config) as services:
                return await question(services)

        return asyncio.run(asked())

    return run


def test_brokers(ask, cluster):
    """Are the broker, its directories and its settings there, and is it the controller?"""
    (one,) = ask(load_brokers)
    detail = ask(lambda services: load_broker(services, one.node_id))

    assert (cluster.bootstrap, True, 0) == (f"{one.host}:{one.port}", one.is_controller, one.behind)
    assert [None] == [directory.error for directory in detail.log_dirs]
    assert "log.retention.hours" in {entry.name for entry in detail.configs}
    with pytest.raises(KafkaError, match="There is no broker 4711 here"):
        ask(lambda services: load_broker(services, 4711))


def test_quorum(ask):
    """Does one node lead, with nothing behind it?"""
    quorum = ask(lambda services: services.admin.describe_metadata_quorum())

    assert [("leader", 0)] == [(row.role, row.lag) for row in quorum_rows(quorum, 0)]


def test_transactions(ask, cluster):
    """Is an open transaction listed with its age and found with its partitions, and does it not count as hanging?"""
    with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("console-moves", 2, 1)])
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="console-mover") as producer:
        producer.begin_transaction()
        producer.send("console-moves", b"perhaps", partition=1)
        producer.flush()
        (row,) = [one for one in ask(load_transactions) if one.transactional_id == "console-mover"]
        detail = ask(lambda services: load_transaction(services, "console-mover"))
        hanging = ask(lambda services: find_hanging(services, silent_minutes=0))
        producer.abort_transaction()

    assert ("Ongoing", 1) == (row.state, row.partitions)
    assert row.open_ms is not None
    assert [("console-moves", 1)] == list(detail.starts)
    assert "console-moves" not in {one.partition.topic for one in hanging}


def test_a_fleet(ask, cluster):
    """Is there no fleet without its topic, and with it the time of its first report?"""
    assert () == ask(load_fleet).topics
    now_ms = int(time.time() * 1000)
    with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("trucks_gps", 3, 1)])
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            # The oldest is a large batch behind small ones, which an answer over all partitions would leave out.
            for number, (age_ms, size) in enumerate(((5_000, 2), (2_000, 2), (9_000, 100_000))):
                producer.send("trucks_gps", b"x" * size, partition=number, timestamp_ms=now_ms - age_ms)
        source = ask(load_fleet)
        admin.delete_topics(["trucks_gps"])

    assert (("trucks_gps",), now_ms - 9_000) == (source.topics, source.first_ms)


def test_no_pipelines(ask):
    """Is there nothing, and no fault, where no pipeline ever ran?"""
    assert [] == ask(lambda services: ProgressReader(services).read())
