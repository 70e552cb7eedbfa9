"""A real gateway before a real broker, and a client that speaks plain HTTP to it."""

import re

import httpx
import pytest

from gateway.streaming import Writer
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread


@pytest.fixture(scope="session")
def broker():
    """One broker for all tests that only use topics of their own."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def gateway(broker):
    """One gateway with the defaults."""
    with GatewayThread(broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="session")
def writer(broker):
    """Somebody who writes to the broker without the gateway."""
    with Writer(broker.bootstrap) as made:
        yield made


@pytest.fixture
def http(gateway):
    """A client whose paths are the gateway's."""
    with httpx.Client(base_url=gateway.url, timeout=30) as client:
        yield client


@pytest.fixture
def here(http):
    """Where the cluster is in REST v3."""
    return f"/v3/clusters/{http.get('/v3/clusters').json()['data'][0]['cluster_id']}"


@pytest.fixture
def topic(request, http, here):
    """A topic of the test's own, with two partitions."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:200]
    made = http.post(f"{here}/topics", json={"topic_name": name, "partitions_count": 2})
    assert made.status_code == 201, made.text
    return name
