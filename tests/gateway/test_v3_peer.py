"""REST v3 before Apache Kafka."""

import shlex
import subprocess
import sys

import httpx
import pytest

from gateway.chunked import Chunked
from headrace.testing.gateway_thread import GatewayThread
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RULE = "--add --allow-principal User:panel --operation Read --topic peer"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """Apache Kafka, with access rules."""
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("gateway") / "broker", settings=SETTINGS)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    yield peer
    peer.remove()


def test_main_paths(kafka):
    """Are topics, records, streams, groups and access rules served before Apache Kafka as before Headrace?"""
    with GatewayThread(kafka.bootstrap) as gateway, httpx.Client(base_url=gateway.url, timeout=60) as http:
        here = f"/v3/clusters/{http.get('/v3/clusters').json()['data'][0]['cluster_id']}"
        made = http.post(f"{here}/topics", json={"topic_name": "peer", "partitions_count": 2})
        one = http.post(f"{here}/topics/peer/records", json={"partition_id": 0})
        with Chunked(gateway.url, f"{here}/topics/peer/records") as stream:
            stream.send('{"partition_id": 0}{"partition_id": 7}')
            stream.end()
            reports = [report["error_code"] for report in stream.reports()]
        group = f"{here}/consumer-groups/peer"
        asked = {"scenario": {"type": "to-earliest"}, "topics": [{"topic_name": "peer"}], "execute": True}
        reset = http.post(f"{group}/offsets:reset", json=asked)
        lag = http.get(f"{group}/lag-summary")
        words = shlex.split(f"kafka-acls --bootstrap-server {kafka.bootstrap} {RULE}")
        subprocess.run(
            [sys.executable, "-P", "-m", "headrace.cli", *words], check=True, capture_output=True, timeout=60
        )
        rules = http.get(f"{here}/acls").json()["data"]
        settings = http.get(f"{here}/topics/peer/configs").json()["data"]
        absent = http.get(f"{here}/consumer-groups/absent")

    assert (made.status_code, made.json()["partitions_count"]) == (201, 2)
    assert (one.status_code, one.json()["offset"], reports) == (200, 0, [200, 40402])
    assert [row["new_offset"] for row in reset.json()["data"]] == [0, 0]
    assert lag.json()["total_lag"] == 2
    assert [(rule["principal"], rule["operation"], rule["resource_name"]) for rule in rules] == [
        ("User:panel", "READ", "peer")
    ]
    assert "retention.ms" in {setting["name"] for setting in settings}
    assert (absent.status_code, absent.json()["error_code"]) == (404, 40404)
