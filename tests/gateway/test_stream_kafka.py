"""Streams before Apache Kafka."""

import pytest

from gateway.streaming import Log, Writer, events, lines
from headrace.testing.gateway_thread import GatewayThread
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.slow, pytest.mark.java]


def test_before_kafka(tmp_path):
    """Does a gateway before Apache Kafka stream, filter, resume and commit as before Headrace?"""
    try:
        peer = KafkaPeer(tmp_path / "broker")
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    with peer, Writer(peer.bootstrap) as writer, GatewayThread(peer.bootstrap) as gateway:
        log = Log(writer, partitions=2)
        with events(gateway.url, log.topic) as source:
            log.send(*range(10))
            seen = source.take(6)
        with events(gateway.url, log.topic, last_id=seen[-1].id, group="streams", max=4) as source:
            seen += source.take(4)
            assert {"reason": "max"} == source.take(1)[0].data
        found = lines(gateway.url, log.topic, since="earliest", until="latest", filter="value >= 7")
        with events(gateway.url, log.topic, group="streams") as source:
            log.send(10)
            assert [10] == source.values(1)
        log.admin.delete_topics([log.topic])

    assert list(range(10)) == sorted(event.data["value"] for event in seen)
    assert [7, 8, 9] == sorted(line["value"] for line in found)
