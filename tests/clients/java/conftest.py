"""A broker and a JVM with Apache Kafka's clients and tools, both started once and shared by every test here.

The broker is Headrace. With HEADRACE_TEST_BROKER=kafka it is Apache Kafka itself, which must pass the same tests: that
is how we know that a test asks for Kafka's behaviour and not for ours.
"""

import json
import os
import re
from itertools import count
from pathlib import Path

import pytest

from clients.java.live_clients import Members, ShareMembers, Transactor
from clients.quick_groups import QUICK_GROUPS
from headrace.testing.broker_process import BrokerProcess, HeadraceProcess
from headrace.testing.java_runner import JavaRunner
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

pytest.register_assert_rewrite("clients.java.tool_pairs")

_NUMBERS = count()


AGAIN_BESIDE_KAFKA = ("test_tools_data.py", "test_tools_groups.py", "test_tools_transactions.py")
"""Tools that are compared at our own broker, and at Apache Kafka only in the campaigns; test_tools_administration.py,
which asks most APIs, is at both."""


def pytest_collection_modifyitems(items):
    """Everything here needs Java and drives a real client."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.slow)
            if item.path.name in AGAIN_BESIDE_KAFKA and re.search(r"[\[-]kafka\b", item.name):
                item.add_marker(pytest.mark.long)


def make_broker(directory: Path, **settings: str) -> BrokerProcess:
    """The broker the tests are about."""
    kind = KafkaPeer if os.environ.get("HEADRACE_TEST_BROKER") == "kafka" else HeadraceProcess
    return kind(directory, settings=settings)


@pytest.fixture(scope="session")
def java():
    """Kafka's clients and tools, ready to run."""
    try:
        runner = JavaRunner(Path(__file__).parent)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    with runner:
        yield runner


@pytest.fixture(scope="session")
def new_broker(java):
    """How to make another broker, for a test that stops it or looks at its files."""
    return make_broker


@pytest.fixture(scope="session")
def broker(java, tmp_path_factory):
    """A running broker."""
    with make_broker(tmp_path_factory.mktemp("java") / "broker", **QUICK_GROUPS) as running:
        yield running


@pytest.fixture
def topic(java, broker):
    """Creates a topic with a name of its own, and tells it; records may be as old as they like."""

    def create(partitions: int = 1, **settings: str) -> str:
        name = f"topic-{next(_NUMBERS)}"
        chosen = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in settings.items()}
        java.check("Topics", broker.bootstrap, "create", name, partitions, *(f"{k}={v}" for k, v in chosen.items()))
        return name

    return create


@pytest.fixture
def group(request):
    """A group id nobody else uses; also good as a transactional id."""
    return f"{request.node.originalname}-{next(_NUMBERS)}"


@pytest.fixture
def send(java, broker):
    """Sends the numbers of a range to a topic's partitions in turn, as text."""

    def numbers(topic: str, wanted: range, *, partitions: int = 1) -> None:
        confluent = pytest.importorskip("confluent_kafka")
        producer = confluent.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        for number in wanted:
            producer.produce(topic, str(number), partition=number % partitions)
        assert producer.flush(30) == 0

    return numbers


@pytest.fixture
def members(java, broker):
    """Starts Java consumers that live as long as the test."""
    live = Members(java, broker.bootstrap)
    yield live
    live.close_all()


@pytest.fixture
def sharers(java, broker):
    """Starts Java share consumers that live as long as the test."""
    live = ShareMembers(java, broker.bootstrap)
    yield live
    live.close_all()


@pytest.fixture
def transactor(java, broker):
    """Opens Java transactional producers that live as long as the test."""
    live = []

    def opened(transactional_id: str, *settings: str) -> Transactor:
        live.append(Transactor(java, broker.bootstrap, transactional_id, *settings))
        return live[-1]

    yield opened
    for producer in live:
        producer.close()


@pytest.fixture
def group_admin(java, broker):
    """Asks the Java admin client about groups and transactions."""
    return lambda *words: json.loads(java.check("GroupAdmin", broker.bootstrap, *words).out)
