"""Real requests of every API, damaged by chance, at many connections: the broker stands, and its logs are whole."""

import contextlib
import os
import random
import struct
import threading
import time

import pytest

from headrace.records.batch import check_batch
from headrace.testing.broker_process import HeadraceProcess
from headrace.wire.messages.metadata import MetadataRequest
from hostile.conftest import bugs
from hostile.neighbour import read_values
from hostile.valid_requests import ValidRequest, mutated, served_versions, valid_request
from wire_client import WireClient

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("HEADRACE_FUZZ_SECONDS", "12"))
SECONDS_LONG = float(os.environ.get("HEADRACE_FUZZ_SECONDS", "600"))
CONNECTIONS = 6
PATIENCE_S = 0.05
"""A damaged fetch may ask to wait for minutes; nobody waits for it."""
MIB = 1 << 20
HOUSEKEEPING = {"log.retention.check.interval.ms": "1000"}
"""Retention looks at the logs while they are fuzzed, as it does every five minutes of a long run."""


class Fuzzer(threading.Thread):
    """One hostile client: damaged requests, one after the other, on as many connections as it takes."""

    def __init__(self, port: int, corpus: list[ValidRequest], chance: random.Random, deadline: float) -> None:
        super().__init__(daemon=True)
        self.sent = self.answered = self.closed = 0
        self.last: list[bytes] = []
        """What was sent on the connection at hand."""
        self._port = port
        self._corpus = corpus
        self._chance = chance
        self._deadline = deadline

    def run(self) -> None:
        """Until the time is over."""
        while time.monotonic() < self._deadline:
            self.last = []
            with contextlib.suppress(ConnectionError), WireClient(self._port) as client:
                client._socket.settimeout(PATIENCE_S)
                self._talk(client)

    def _talk(self, client: WireClient) -> None:
        for _ in range(self._chance.choice((1, 5, 50))):
            for _ in range(self._chance.choice((1, 1, 8))):
                self._send(client)
            try:
                client.receive_frame()
                self.answered += 1
            except TimeoutError:
                return
            except ConnectionError:
                self.closed += 1
                return
            if time.monotonic() > self._deadline:
                return

    def _send(self, client: WireClient) -> None:
        request = self._chance.choice(self._corpus)
        luck = self._chance.random()
        if luck < 0.8:
            # The header is right, so that the damage gets as deep as it can.
            frame = request.head + mutated(request.body, self._chance)
        else:
            frame = mutated(request.frame, self._chance) if luck < 0.95 else request.frame
        size = len(frame) if self._chance.random() < 0.97 else self._chance.choice((0, -1, len(frame) // 2, 2**31 - 1))
        self.last.append(frame)
        client.send_bytes(struct.pack(">i", size) + frame)
        self.sent += 1


def run(directory, chance: random.Random, seconds: float) -> None:
    """Fuzz for a while, with a neighbour next to it, then look at what is left."""
    from hostile.neighbour import Neighbour

    with HeadraceProcess(directory / "fuzzed", settings=HOUSEKEEPING) as broker:
        with WireClient(broker.port) as client:
            topics = {name: client.create_topic(name, partitions=2).topic_id for name in ("fuzzed", "other")}
            client.create_topic("compacted", cleanup_policy="compact")
        corpus = [
            valid_request(key, version, topic=topic, topic_id=topic_id)
            for key, version in served_versions()
            for topic, topic_id in topics.items()
        ]
        before = broker.memory().anonymous_bytes
        deadline = time.monotonic() + seconds
        fuzzers = [Fuzzer(broker.port, corpus, random.Random(chance.random()), deadline) for _ in range(CONNECTIONS)]
        with Neighbour(broker.port, "neighbour"):
            for fuzzer in fuzzers:
                fuzzer.start()
            for fuzzer in fuzzers:
                fuzzer.join()
        print(f"{sum(f.sent for f in fuzzers)} sent, {sum(f.answered for f in fuzzers)} answered")
        assert sum(f.answered for f in fuzzers) > 10 * CONNECTIONS
        assert bugs(broker) == 0, last_bug(broker)
        assert broker.memory().anonymous_bytes - before < 64 * MIB
        records = verify(broker)
        broker.kill()
        broker.start()
        assert verify(broker) == records, "and so it is after a crash"


def last_bug(broker: HeadraceProcess) -> str:
    """The last traceback in the broker's output."""
    text = broker.output.read_text(errors="replace")
    return text[text.rfind("Traceback") - 200 :][:3_000]


def verify(broker: HeadraceProcess) -> dict[tuple[str, int], int]:
    """Is every batch of every partition whole, and do the offsets follow each other? Gives where each ends."""
    ends = {}
    with WireClient(broker.port) as client:
        for topic in client.ask("Metadata", 12, MetadataRequest(topics=None)).topics:
            for partition in topic.partitions:
                ends[topic.name, partition.partition_index] = verify_partition(
                    client, topic.name, partition.partition_index
                )
        assert read_values(client, "neighbour")
    return ends


def verify_partition(client: WireClient, topic: str, partition: int) -> int:
    """Walk one partition from its start; where it ends."""
    offset = client.list_offset(topic, -2, partition=partition).offset
    end = client.list_offset(topic, -1, partition=partition).offset
    while offset < end:
        found = client.fetch(topic, offset, partition=partition, max_bytes=4 * MIB)
        assert found.error_code == 0
        view, position = memoryview(found.records), 0
        assert view, f"nothing at {offset} of {topic}-{partition}"
        while position < len(view):
            header = check_batch(view, position)
            assert header.base_offset <= offset <= header.last_offset
            offset, position = header.last_offset + 1, position + header.size
    return end


def test_fuzz(tmp_path, chance):
    """Does a broker stand some seconds of damaged requests?"""
    run(tmp_path, chance, SECONDS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_fuzz(tmp_path, chance):
    """And ten minutes?"""
    run(tmp_path, chance, SECONDS_LONG)
