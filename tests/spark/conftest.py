"""One Spark session for all tests here, and brokers: Headrace in this process, and Apache Kafka where it can be had."""

import re
from itertools import count
from pathlib import Path

import pytest

from clients.quick_groups import QUICK_GROUPS
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer
from spark.topics import Topics

_NUMBERS = count()
QUICK_BROKER = {
    **QUICK_GROUPS,
    "log.cleaner.backoff.ms": "100",
    "auto.create.topics.enable": "false",
    # Tests send records of years ago.
    "log.retention.ms": "-1",
}
# Short work: the quick compiler and the plain collector start faster and leave the other core to the broker.
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


BESIDE_KAFKA = {
    "test_columns",
    "test_transactions",
    "test_group_shows_progress",
    "test_every_column",
}
"""What leans on the broker most. The rest is ours, whoever the broker is: beside Apache Kafka only in the campaigns."""


def pytest_collection_modifyitems(items):
    """Everything here runs Spark."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.slow)
            if "[kafka" in item.name and item.originalname not in BESIDE_KAFKA:
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark():
    """A Spark session as the product makes it, small."""
    pytest.importorskip("pyspark")
    from headrace.spark.java import NoJava
    from headrace.spark.session import spark_session

    try:
        session = spark_session(
            "tests", "local[2]", {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": _JVM}
        )
    except NoJava as missing:
        pytest.skip(str(missing))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["headrace", pytest.param("kafka", marks=pytest.mark.java)])
def broker(request, tmp_path_factory):
    """A running broker: `bootstrap`, and `restart()`."""
    if request.param == "headrace":
        with Cluster(QUICK_BROKER) as cluster:
            yield cluster
    else:
        yield request.getfixturevalue("kafka")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Apache Kafka, which takes long to start: one for all."""
    try:
        peer = RestartablePeer(tmp_path_factory.mktemp("peer") / "broker", settings=QUICK_BROKER)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    yield peer
    peer.remove()


class RestartablePeer(KafkaPeer):
    """Apache Kafka, stopped and started as our own cluster is."""

    def restart(self) -> None:
        """Stop cleanly and start again on the same data and the same port."""
        self.stop()
        self.start()


@pytest.fixture
def topics(broker):
    """Creates topics, sends records, deletes both."""
    with Topics(broker.bootstrap) as found:
        yield found


@pytest.fixture
def topic(request):
    """A topic name nobody else uses."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.originalname).strip("-")
    return f"{name[:150]}-{next(_NUMBERS)}"


@pytest.fixture
def read(spark, broker):
    """Reads a topic as a table: options are given as keywords, those with dots in a dictionary."""

    def start(topic=None, more=None, schema=None, **options):
        reader = spark.read.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
        given = {**({"subscribe": topic} if topic else {}), **options, **(more or {})}
        reader = reader.options(**{name: str(value) for name, value in given.items()})
        return (reader.schema(schema) if schema else reader).load()

    return start


@pytest.fixture
def stream(spark, broker, tmp_path):
    """Makes streaming queries over a topic, each with a checkpoint of its own unless it is given one."""
    from spark.queries import Query

    queries = []

    def make(topic=None, more=None, schema=None, checkpoint=None, **options):
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            **({"subscribe": topic} if topic else {}),
            **options,
            **(more or {}),
        }
        place = tmp_path / (checkpoint or f"checkpoint-{len(queries)}")
        queries.append(Query(spark, {name: str(value) for name, value in given.items()}, schema, place))
        return queries[-1]

    yield make
    for query in queries:
        query.stop()
