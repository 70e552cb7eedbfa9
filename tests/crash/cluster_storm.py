"""A run of faults against a cluster under load: clients at work, nodes that die and come back, the account at the end.

The account asks four things: did every client get what it was promised (`headrace.testing.history`), did the group
process every record (`headrace.testing.group_history`), are all replicas the same byte for byte, and do all nodes have
the same metadata log.
"""

import contextlib
import json
import random
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from crash.churn import read_diary
from crash.cluster_load import RESTLESS, ClusterProducer, ClusterReader, Delivery
from crash.cluster_nodes import PATIENCE_S, Node, Nodes
from crash.load import DEADLINE_S, Acks, Client
from crash.log_reader import Place, whole_batches
from headrace.testing import group_history
from headrace.testing.group_history import Event, What
from headrace.testing.history import Outcome, Poll, Send, check

SEGMENT_BYTES = 256 * 1024
TOPICS = {"flushed": 4, "cached": 2}
"""One topic acknowledges what is on disks, one what is in page caches, which killed processes leave behind."""
GROUP_TOPIC = "flushed"
MEMBERS = 2
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {"group.protocol": "classic", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 300},
    "consumer": {"group.protocol": "consumer"},
}


class Loss(NamedTuple):
    """A moment at which some partitions lost their leader."""

    at_s: float
    places: frozenset[Place]


class ClusterStorm:
    """Clients on some topics of a cluster, and all that they saw."""

    def __init__(self, nodes: Nodes, chance: random.Random, topics: dict[str, int] = TOPICS) -> None:
        self.nodes = nodes
        self.chance = chance
        self.places: list[Place] = [(topic, index) for topic, count in topics.items() for index in range(count)]
        self.acks = Acks()
        self.losses: list[Loss] = []
        self.extra: list[Send] = []
        """What was sent by others than the producers here."""
        self._stale = 0
        self.audit: list[Poll] = []
        """Every record of every log, read when all was over."""
        for topic, partitions in topics.items():
            flushes = str(topic == "flushed").lower()
            nodes.create_topic(
                topic,
                partitions=partitions,
                internal_segment_bytes=str(SEGMENT_BYTES),
                flush_on_acks_all=flushes,
            )
        bootstrap = nodes.bootstrap
        luck = [random.Random(chance.random()) for _ in range(2)]
        self.producers = [
            ClusterProducer(f"idempotent-{i}", bootstrap, self.places, luck[i], self.acks) for i in range(2)
        ]
        self.reader = ClusterReader("reader", bootstrap, self.places)
        self.clients: list[Client] = [*self.producers, self.reader]
        self.group = Group(nodes, topics[GROUP_TOPIC], chance.choice(sorted(PROTOCOLS)))

    def __enter__(self):
        for client in self.clients:
            client.start()
        self.group.start()
        return self

    def __exit__(self, kind, error, trace):
        for client in self.clients:
            client.ending.set()
        self.group.kill()
        for client in self.clients:
            client.join()

    # --- faults

    def wait_for_more(self, number: int) -> None:
        """Return once so many more records were acknowledged; if a client died instead, raises what it died of."""
        try:
            self.acks.wait_for_more(number)
        except TimeoutError:
            for client in self.clients:
                if client.bug is not None:
                    raise client.bug from None
            raise TimeoutError(f"{number} acknowledgements did not come\n{self.nodes.tails()}") from None

    def victim(self) -> Node:
        """Half of the time the leader of a partition that is written to, else any node that runs."""
        if self.chance.random() < 0.5:
            return self.nodes.leader_of(self.chance.choice(self.places))
        return self.chance.choice(self.nodes.up)

    def stale_numbers(self, count: int) -> range:
        """The next so many numbers for records written to a node that may no longer lead."""
        self._stale += count
        return range(self._stale - count, self._stale)

    def note_loss(self, node: Node) -> None:
        """Remember what a node leads, now that it is about to lose it."""
        led = [place for place, state in self.nodes.states(self.places).items() if state.leader_id == node.node_id]
        self.losses.append(Loss(time.monotonic(), frozenset(led)))

    def until_deposed(self, node: Node) -> None:
        """Wait until the other nodes say that others lead what it led."""
        others = [other for other in self.nodes.up if other is not node]

        def leads_nothing() -> bool:
            states = (state for other in others for state in self.nodes.states(self.places, other).values())
            return all(state.leader_id not in {-1, node.node_id} for state in states)

        self.nodes.until(leads_nothing, f"nobody took over from node {node.node_id}")

    # --- the end

    def settle(self) -> None:
        """With all nodes up, let the clients finish, and read everything to its end."""
        for producer in self.producers:
            producer.end()
        self.nodes.until_in_sync(self.places)
        ends = self._ends()
        self.reader.read_to(ends)
        auditor = ClusterReader("auditor", self.nodes.bootstrap, self.places)
        auditor.start()
        auditor.read_to(ends)
        self.audit = auditor.polls
        self.group.settle({index: end for (topic, index), end in ends.items() if topic == GROUP_TOPIC})

    def _ends(self) -> dict[Place, int]:
        config = {**RESTLESS, "bootstrap.servers": self.nodes.bootstrap, "group.id": "nobody"}
        with contextlib.closing(Consumer(config)) as consumer:
            return {
                place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=DEADLINE_S)[1]
                for place in self.places
            }

    @property
    def sends(self) -> list[Send]:
        """What every producer was told."""
        return [*self.extra, *(send for producer in self.producers for send in producer.sends)]

    @property
    def failures(self) -> list[str]:
        """Every record a producer gave up on."""
        return [failure for producer in self.producers for failure in producer.failures]

    def account(self) -> str:
        """Assert that every promise was kept; the figures of the run."""
        idempotent = {producer.name for producer in self.producers}
        violations = check(self.sends, self.reader.polls + self.audit, idempotent=idempotent, dense=True)
        assert violations == [], f"{len(violations)}: {violations[:10]}"
        bugs = self.nodes.bugs()
        assert bugs == [], "\n".join(bugs)
        self.nodes.until(lambda: not different_logs(self.nodes, self.places), f"replicas differ: {self._difference()}")
        until_same_metadata(self.nodes)
        processed = self.group.account(self.sends)
        acked = sum(send.outcome is Outcome.OK for send in self.sends)
        return f"{acked} acked records, {len(self.audit)} in the logs, {len(self.failures)} failed, {processed}"

    def _difference(self) -> list[str]:
        return different_logs(self.nodes, self.places)

    def failovers(self) -> str:
        """From each loss of a leader to the next record sent and acknowledged, in words."""
        deliveries = self._deliveries()
        return spread([found for loss in self.losses if (found := _recovery_s(loss, deliveries)) is not None])

    def latencies(self) -> str:
        """From each send to its acknowledgement, in words."""
        return spread([delivery.acked_s - delivery.sent_s for delivery in self._deliveries()])

    def _deliveries(self) -> list[Delivery]:
        return [delivery for producer in self.producers for delivery in producer.deliveries]


class Group:
    """Consumer group members as processes of their own, which nobody disturbs: only the cluster is."""

    def __init__(self, nodes: Nodes, partitions: int, protocol: str) -> None:
        self._nodes = nodes
        self._protocol = protocol
        self._partitions = partitions
        self._members: dict[str, subprocess.Popen[bytes]] = {}
        self._events: list[Event] = []

    def start(self) -> None:
        """All members join."""
        for number in range(MEMBERS):
            name = f"member-{number}"
            settings = {
                **RESTLESS,
                "bootstrap.servers": self._nodes.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "topic": GROUP_TOPIC,
                **PROTOCOLS[self._protocol],
            }
            command = [sys.executable, "-m", "crash.group_member", name, str(self._diary(name)), json.dumps(settings)]
            self._events.append(Event(time.monotonic(), name, What.JOINED))
            self._members[name] = subprocess.Popen(command, cwd=Path(__file__).parents[1])

    def kill(self) -> None:
        """End all members."""
        for process in self._members.values():
            process.kill()
            process.wait()

    def settle(self, ends: dict[int, int]) -> None:
        """Wait until all there is was processed and committed."""

        def all_committed() -> bool:
            for name, process in self._members.items():
                assert process.poll() is None, f"{name} ended by itself with {process.returncode}"
            return self._committed() == ends

        self._nodes.until(all_committed, f"the group did not commit {ends}, see the diaries")
        self._events.append(Event(time.monotonic(), "history", What.END))

    def _committed(self) -> dict[int, int]:
        config = {**RESTLESS, "bootstrap.servers": self._nodes.bootstrap, "group.id": "readers"}
        asked = [TopicPartition(GROUP_TOPIC, index) for index in range(self._partitions)]
        with contextlib.closing(Consumer(config)) as consumer:
            try:
                return {found.partition: found.offset for found in consumer.committed(asked, timeout=PATIENCE_S)}
            except KafkaException:
                return {}  # The coordinator may be on its way to another node: it is asked again.

    def account(self, sends: list[Send]) -> str:
        """Assert that the group kept its promises; what it did, in words."""
        produced = [
            Event(0.0, send.payload.producer, What.PRODUCED, send.payload.partition, send.offset)
            for send in sends
            # A batch that was sent again after many others is acknowledged without an offset; that it is there once is
            # asked of the log.
            if send.outcome is Outcome.OK and send.payload.topic == GROUP_TOPIC and send.offset is not None
        ]
        told = [event for name in self._members for event in read_diary(self._diary(name).read_text())]
        # How long nobody owns a partition depends on how long there is no coordinator: another test's question.
        violations = group_history.check(self._events + produced + told, settle_s=float("inf"))
        assert violations == [], f"{len(violations)}: {violations[:10]}"
        processed = [(event.partition, event.offset) for event in told if event.what is What.PROCESSED]
        again = len(processed) - len(set(processed))
        return f"{len(set(processed))} processed by the {self._protocol} group, {again} of them again"

    def _diary(self, name: str) -> Path:
        return self._nodes.directory / f"{name}.jsonl"


def spread(seconds: list[float]) -> str:
    """Some durations in words."""
    if not seconds:
        return "none measured"
    return f"median {median(seconds):.2f} s, longest {max(seconds):.2f} s of {len(seconds)}"


def _recovery_s(loss: Loss, deliveries: list[Delivery]) -> float | None:
    later = [
        delivery.acked_s for delivery in deliveries if delivery.place in loss.places and delivery.sent_s > loss.at_s
    ]
    return min(later) - loss.at_s if later else None


def different_logs(nodes: Nodes, places: list[Place]) -> list[str]:
    """The partitions whose logs are not the same bytes on every node."""
    found = []
    for topic, index in places:
        logs = {node.node_id: _log_bytes(node, topic, index) for node in nodes}
        if len(set(logs.values())) > 1:
            found.append(f"{topic}-{index}: " + ", ".join(f"{node} {len(log)}" for node, log in logs.items()))
    return found


def _log_bytes(node: Node, topic: str, index: int) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((node.log_dir / f"{topic}-{index}").glob("*.log")))


def until_same_metadata(nodes: Nodes) -> None:
    """Wait until all nodes have the same metadata log: a controller that was just replaced has a tail to give up."""
    nodes.until(lambda: not different_metadata(nodes), "the metadata logs differ")


def different_metadata(nodes: Nodes) -> list[str]:
    """Where two nodes have different batches at one offset of the metadata log."""
    logs = {node.node_id: dict(whole_batches(_log_bytes(node, "__cluster_metadata", 0))) for node in nodes}
    return [
        f"nodes {one} and {other} at {offset}"
        for one, other in combinations(logs, 2)
        for offset in logs[one].keys() & logs[other].keys()
        if logs[one][offset] != logs[other][offset]
    ]
