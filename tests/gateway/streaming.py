"""What the tests of streams share: a topic to write to, and clients that read as browsers and curl do."""

import itertools
import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.producer import KafkaProducer

_NUMBERS = itertools.count()


_PLAIN = {"timeout": 20, "verify": False, "trust_env": False}
"""Certificates, which nobody asks for here, take longer to load than most tests."""


class Writer:
    """Somebody who writes to topics and makes them; a context manager."""

    def __init__(self, bootstrap):
        self.admin = KafkaAdmin(bootstrap_servers=bootstrap)
        self.producer = KafkaProducer(bootstrap_servers=bootstrap)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.producer.close()
        self.admin.close()


class Log:
    """A topic of its own."""

    def __init__(self, writer, *, partitions=1, replicas=1, configs=None):
        self.topic = f"stream-{next(_NUMBERS)}"
        self.admin = writer.admin
        self.admin.create_topics([NewTopic(self.topic, partitions, replicas, topic_configs=configs or {})])
        self._producer = writer.producer

    def send(self, *values, key=None, partition=None, headers=None, timestamp_ms=None):
        """Write, and wait until it is stored."""
        deliveries = []
        for value in values:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            delivery = self._producer.send(
                self.topic,
                data,
                key=None if key is None else key.encode(),
                partition=partition,
                headers=headers or [],
                timestamp_ms=timestamp_ms,
            )
            deliveries.append(delivery)
        self._producer.flush()
        for delivery in deliveries:
            delivery.get(20)


def overflow(log):
    """Write more than the kernel holds for a client that does not read; how many records."""
    limits = Path("/proc/sys/net/ipv4/tcp_wmem")
    held = int(limits.read_text().split()[2]) if limits.exists() else 4 * 1024 * 1024
    count = 2 * held // 100_000 + 80
    for _ in range(0, count, 20):
        log.send(*[b"x" * 100_000] * 20)
    return count


class SseEvent(NamedTuple):
    """An event as EventSource would dispatch it."""

    name: str
    data: object
    id: str


_SILENT = SseEvent("", None, "")


class EventSource:
    """Reads events, and keeps the last id as a browser does."""

    def __init__(self, response):
        self.response = response
        self._lines = response.iter_lines()
        self.last_id = ""

    def __iter__(self):
        for event in iter(self._block, None):
            if event is not _SILENT:
                yield event

    def step(self):
        """One block, whether it dispatches an event or only says an id."""
        self._block()

    def _block(self):
        name, data, said = "message", [], None
        for line in self._lines:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if line == "":
                self.last_id = self.last_id if said is None else said
                return SseEvent(name, json.loads("\n".join(data)), self.last_id) if data else _SILENT
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "id":
                said = value
        return None

    def take(self, count):
        """So many events."""
        return list(itertools.islice(self, count))

    def values(self, count):
        """The values of so many records."""
        return [event.data["value"] for event in self.take(count)]


@contextmanager
def events(url, topic, *, last_id=None, **query):
    """An open stream of server-sent events."""
    headers = {} if last_id is None else {"last-event-id": last_id}
    with (
        httpx.Client(**_PLAIN) as client,
        client.stream("GET", f"{url}/stream/{topic}", params=query, headers=headers) as response,
    ):
        if response.status_code != 200:
            response.read()
        yield EventSource(response)


def get(url, path, *, accept="*/*", headers=None, **query):
    """An answer that ends."""
    return httpx.get(f"{url}/stream/{path}", params=query, headers={"accept": accept, **(headers or {})}, **_PLAIN)


def lines(url, topic, **query):
    """All lines of a stream that ends."""
    answer = get(url, topic, accept="application/x-ndjson", **query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines() if line]


@contextmanager
def raw(url, topic, *, accept="*/*", **query):
    """An open answer, as it comes."""
    with httpx.stream("GET", f"{url}/stream/{topic}", params=query, headers={"accept": accept}, **_PLAIN) as answer:
        yield answer


def committed(log, group):
    """Where a group is."""
    found = log.admin.list_group_offsets(group)
    return {place.partition: one.offset for place, one in found.items()}


def wait_for(question, expected):
    """Ask until the answer is as expected."""
    deadline = time.monotonic() + 20
    while (answer := question()) != expected:
        assert time.monotonic() < deadline, answer
    return answer


def until_known(cluster, topic):
    """Wait until every broker has heard of a topic: a gateway may ask any of them whether it is there."""
    for node in cluster.nodes:
        wait_for(lambda node=node: cluster.ask(lambda broker: topic in broker.metadata.topics, node=node), True)


def hear(websocket, count=1):
    """So many messages, those that only say where we are aside."""
    messages = []
    while len(messages) < count:
        message = json.loads(websocket.recv(timeout=20))
        messages += [message] if message.keys() != {"id"} else []
    return messages
