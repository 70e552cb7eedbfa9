"""The broker that the group and transaction tests of the Python libraries share.

It is Headrace in this process. With HEADRACE_TEST_BROKER=kafka it is Apache Kafka itself, which must pass the same
tests: that is how we know that a test asks for Kafka's behaviour and not for ours.
"""

import os
import re
from itertools import count

import pytest

from clients.quick_groups import QUICK_GROUPS
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

_NUMBERS = count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A running broker on which groups and transactions react at once."""
    if os.environ.get("HEADRACE_TEST_BROKER") != "kafka":
        with Cluster(QUICK_GROUPS) as cluster:
            yield cluster
        return
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("clients") / "broker", settings=QUICK_GROUPS)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    yield peer
    peer.remove()


@pytest.fixture
def topic(request):
    """A topic name nobody else uses: tests of different libraries have the same names."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", f"{request.path.stem}-{request.node.name}")[:200].strip("-")


@pytest.fixture
def group(request):
    """A group id nobody else uses; also good as a transactional id."""
    return f"{request.node.originalname}-{next(_NUMBERS)}"
