"""The active controller dies while topics come and go: all nodes end up with the same metadata."""

import os
import random
import re
import time
from collections import Counter
from itertools import count
from uuid import UUID

import pytest

from crash.cluster_nodes import Nodes, creation
from crash.cluster_storm import spread, until_same_metadata
from crash.load import Acks, Client
from headrace.model.errors import ErrorCode
from wire_client import WireClient

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADRACE_KILLS", "3"))
KILLS_LONG = int(os.environ.get("HEADRACE_KILLS", "60"))
TOPICS_MAX = 30
PARTITION_DIRECTORY = re.compile(r"t\d+-\d+")


class TopicChurn(Client):
    """Creates and deletes topics one after the other, each by way of any node, and writes down what it was told."""

    def __init__(self, ports: list[int], chance: random.Random) -> None:
        super().__init__("topics", 0, [], chance)
        self.present: dict[str, int] = {}
        """Topics whose creation was acknowledged and whose deletion was not asked for, with their partitions."""
        self.absent: set[str] = set()
        """Topics whose deletion was acknowledged."""
        self.done = Acks()
        self.creations: list[tuple[float, float]] = []
        """When each acknowledged creation was asked for, and when it was acknowledged."""
        self.refusals: Counter[str] = Counter()
        self._ports = ports

    def work(self) -> None:
        """Until told to end."""
        for number in count():
            if self.ending.is_set():
                break
            if self.present and (len(self.present) >= TOPICS_MAX or self.chance.random() < 0.4):
                self._remove_topic(self.chance.choice(sorted(self.present)))
            else:
                self._make_topic(f"t{number}", self.chance.randint(1, 4))

    def _make_topic(self, name: str, partitions: int) -> None:
        asked_s = time.monotonic()
        code = self._ask(lambda client: client.ask("CreateTopics", 7, creation(name, partitions)).topics[0].error_code)
        if code is ErrorCode.NONE:
            self.present[name] = partitions
            self.creations.append((asked_s, time.monotonic()))
            self.done.add()

    def _remove_topic(self, name: str) -> None:
        del self.present[name]
        code = self._ask(lambda client: client.delete_topic(name).error_code)
        if code is ErrorCode.NONE:
            self.absent.add(name)
            self.done.add()

    def _ask(self, question) -> ErrorCode | None:
        """The error code of an answer; None if there was no answer, so that anything may have happened."""
        try:
            with WireClient(self.chance.choice(self._ports)) as client:
                code = ErrorCode(question(client))
        except OSError as reason:
            self.refusals[type(reason).__name__] += 1
            return None
        if code is not ErrorCode.NONE:
            self.refusals[code.name] += 1
        return code


def known_topics(nodes: Nodes, node) -> dict[str, tuple[UUID, list[object]]]:
    """All that a node says of every topic."""
    return {topic.name: (topic.topic_id, sorted(topic.partitions, key=_index)) for topic in nodes.topics(node)}


def _index(partition) -> int:
    return partition.partition_index


def directories(node) -> set[str]:
    """The partitions a node has a directory for; what is to be deleted, or was set aside, has a longer name."""
    return {path.name for path in node.log_dir.iterdir() if PARTITION_DIRECTORY.fullmatch(path.name)}


def kill_controllers(nodes: Nodes, chance: random.Random, kills: int) -> None:
    """So many kills of the active controller, and the account."""
    churn = TopicChurn([node.port for node in nodes], random.Random(chance.random()))
    churn.start()
    kill_times = []
    try:
        for number in range(kills):
            churn.done.wait_for_more(chance.randrange(1, 10))
            node = nodes.active_controller()
            kill_times.append(time.monotonic())
            node.kill()
            # Who misses much finds that the log it could follow is gone, and is given a snapshot.
            churn.done.wait_for_more(chance.choice((2, 2, 100)))
            node.start()
            print(f"{number}: node {node.node_id}, {churn.done.count} topics created or deleted", flush=True)
    finally:
        churn.ending.set()
    churn.end()
    account(nodes, churn)
    waits = [
        min(acked for asked, acked in churn.creations if asked > at_s) - at_s
        for at_s in kill_times
        if any(asked > at_s for asked, _ in churn.creations)
    ]
    print(f"{kills} kills, {len(churn.present)} topics, {len(churn.absent)} deleted, refused: {dict(churn.refusals)}")
    print(f"from the kill of the active controller to the next topic created: {spread(waits)}")


def account(nodes: Nodes, churn: TopicChurn) -> None:
    """Assert that all nodes agree, and that what they agree on is what was acknowledged."""
    first, *others = list(nodes)
    nodes.until(
        lambda: all(known_topics(nodes, other) == known_topics(nodes, first) for other in others),
        "the nodes' metadata differ",
    )
    known = known_topics(nodes, first)

    assert {name: len(known[name][1]) if name in known else 0 for name in churn.present} == churn.present
    assert churn.absent & set(known) == set()
    wanted = {f"{name}-{index}" for name, (_, partitions) in known.items() for index in range(len(partitions))}
    nodes.until(
        lambda: all(directories(node) == wanted for node in nodes), "a node has other directories than the metadata"
    )
    until_same_metadata(nodes)
    assert nodes.bugs() == []


def test_controller_killed_while_topics_come_and_go(nodes, chance):
    """Do all nodes agree on every topic after the active controller was killed again and again?"""
    kill_controllers(nodes, chance, KILLS)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_controller_kills(nodes, chance):
    """The same, sixty times: do they still agree?"""
    kill_controllers(nodes, chance, KILLS_LONG)
