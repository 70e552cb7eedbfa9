"""A stream through everything at once: leaders are killed, gateways are replaced, connections are cut."""

import random
import threading
import time

import httpx
import pytest

from gateway.streaming import Log, Writer, events
from headrace.client.producer import KafkaProducer
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

SETTINGS = {
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
}


class Reader:
    """A client that reads until its connection breaks, and comes again with the last id."""

    def __init__(self, topic, chance, wake):
        """`wake` writes a record, so that one who waits for the next looks up."""
        self.topic = topic
        self._wake = wake
        self.gateway = None
        self.seen = []
        self.ended = threading.Event()
        self._chance = chance
        self._last_id = f"{topic}:0=0,1=0,2=0"
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self._wake()
        self._thread.join(60)

    def _run(self):
        while not self.ended.is_set():
            # However it breaks, and however it is refused meanwhile: the id is all that is needed.
            try:
                with events(self.gateway.url, self.topic, last_id=self._last_id) as source:
                    if source.response.status_code == 200:
                        self._read(source)
            except httpx.HTTPError:
                continue

    def _read(self, source):
        for event in source:
            if event.name == "message" and not self.ended.is_set():
                self.seen.append(event.data["value"])
                self._last_id = event.id
            if self.ended.is_set() or self._chance.random() < 0.002:
                return


@pytest.mark.parametrize("rounds", [1, pytest.param(8, marks=pytest.mark.long)])
def test_storm(rounds):
    """Is every record seen exactly once while leaders are killed, gateways replaced and connections cut?"""
    chance = random.Random(rounds)
    with (
        Cluster(SETTINGS, brokers=3) as cluster,
        Writer(cluster.bootstrap) as writer,
        KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True) as producer,
        GatewayThread(cluster.bootstrap, {"stream.heartbeat.ms": "500"}) as first,
        GatewayThread(cluster.bootstrap, {"stream.heartbeat.ms": "500"}) as second,
    ):
        log = Log(writer, partitions=3, replicas=3)
        reader = Reader(log.topic, chance, lambda: log.send(-1, partition=0))
        reader.gateway = first
        written = []

        def write(count):
            deliveries = [producer.send(log.topic, b"%d" % n) for n in range(len(written), len(written) + count)]
            for delivery in deliveries:
                written.append(len(written))
                delivery.get(60)

        with reader:
            for turn in range(rounds):
                write(300)
                node = cluster.leader_of(log.topic, turn % 3)
                cluster.kill(node)
                write(300)
                reader.gateway = second if reader.gateway is first else first
                cluster.restart(node)
                write(300)
            deadline = time.monotonic() + 60
            while len(reader.seen) < len(written) and time.monotonic() < deadline:
                time.sleep(0.05)

    assert written == sorted(reader.seen)
