"""The same gateway before Apache Kafka."""

import httpx
import pytest
from tests.gateway.rest_v2 import JSON, new_instance, produce, read, refusal, subscribe

from headrace.testing.gateway_thread import GatewayThread
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """A client of a gateway before one broker of Apache Kafka."""
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("gateway") / "broker", settings=SETTINGS)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    try:
        with (
            GatewayThread(peer.bootstrap) as gateway,
            httpx.Client(base_url=gateway.url, timeout=30) as client,
        ):
            yield client
    finally:
        peer.remove()


@pytest.mark.java
@pytest.mark.slow
def test_round_trip(kafka):
    """Are records stored by Apache Kafka, in a topic it made for them, and read with and without an instance?"""
    lines = produce(kafka, "/topics/new", *({"key": n, "value": {"n": n}} for n in range(3)))
    assert [line["offset"] for line in lines] == [0, 1, 2]
    instance = new_instance(kafka, format="json")
    subscribe(kafka, instance, "new")

    assert [record["value"] for record in read(kafka, instance, 3)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert kafka.delete(instance).status_code == 204
    found = kafka.get("/topics/new/partitions/0/records?offset=-1").json()
    assert (found["records"][0]["value"], found["next_offset"]) == ({"n": 2}, 3)


@pytest.mark.java
@pytest.mark.slow
def test_refusals(kafka):
    """Has what Apache Kafka refuses the numbers it has before Headrace?"""
    assert refusal(kafka.get("/topics/missing")) == (404, 40401)
    assert refusal(kafka.get("/topics/missing/partitions/0/records")) == (404, 40401)
    large = {"records": [{"value": "x" * 1_100_000}]}
    assert refusal(kafka.post("/topics/new", headers={"content-type": JSON}, json=large)) == (413, 41301)
