"""Workers that copy inputs to outputs in transactions while they and their broker die, and the account at the end."""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from crash.transaction_worker import FATAL_EXIT, QUIET, STRAY_EXIT, STUCK_EXIT
from headrace.testing.transaction_history import Ending, Input, Output, Transaction, check
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from wire_client import WireClient

WORKERS = 4
INPUTS_MAX = 5
INPUT_PARTITIONS = 6
OFFSETS_PARTITIONS = 4
PLACES = [("out-a", 0), ("out-a", 1), ("out-b", 0)]
TOPICS = {"in": INPUT_PARTITIONS, "out-a": 2, "out-b": 1}
SESSION_MS = 3_000
TRANSACTION_MS = 8_000
DEADLINE_S = 60.0
LOOK_EVERY_S = 0.05
FALLS = {FATAL_EXIT: "fatal", STUCK_EXIT: "stuck", STRAY_EXIT: "stray"}
"""How a worker may end by itself."""
BROKER_SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {"group.protocol": "classic", "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300},
    "consumer": {"group.protocol": "consumer"},
}


class ExactlyOnce:
    """One copy job: its inputs, its workers, and what is found in the outputs."""

    def __init__(
        self, bootstrap: str, place: Path, chance: random.Random, *, transactions: int, protocol: str = "classic"
    ) -> None:
        self.bootstrap = bootstrap
        self.chance = chance
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.counts = dict.fromkeys(("killed", "ended", *FALLS.values()), 0)
        self._protocol = protocol
        self._inputs = transactions * INPUTS_MAX
        self._diaries = place / "diaries"
        self._diaries.mkdir(parents=True)
        self._said = place / "workers.out"

    @property
    def _port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def __enter__(self):
        with WireClient(self._port) as client:
            for topic, partitions in TOPICS.items():
                assert client.create_topic(topic, partitions=partitions).error_code == 0
        producer = Producer({**QUIET, "bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        for number in range(self._inputs):
            producer.produce("in", b"%d" % number, partition=number % INPUT_PARTITIONS)
            producer.poll(0)
        assert producer.flush(DEADLINE_S) == 0
        self._commit_beginnings()
        for number in range(WORKERS):
            self._start(f"worker-{number}")
        return self

    def __exit__(self, kind, error, trace):
        for process in self.workers.values():
            process.kill()
            process.wait()

    def _commit_beginnings(self) -> None:
        """Have the group begin at offset 0 of every input by its own word.

        Where nothing is committed librdkafka 2.16 asks for the earliest offset, and if it loses the partition before
        the answer comes it asks again later, and may then go back to it.
        """
        beginnings = [TopicPartition("in", index, 0) for index in range(INPUT_PARTITIONS)]
        with contextlib.closing(
            Consumer({**QUIET, "bootstrap.servers": self.bootstrap, "group.id": "copy"})
        ) as consumer:
            answered = consumer.commit(offsets=beginnings, asynchronous=False)
        assert all(answer.error is None for answer in answered)

    # --- what is done to the workers

    def _start(self, name: str) -> None:
        settings = {
            "common": {"bootstrap.servers": self.bootstrap},
            "producer": {"transaction.timeout.ms": TRANSACTION_MS, "linger.ms": 1},
            "consumer": {
                "group.id": "copy",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **PROTOCOLS[self._protocol],
            },
            "work": {
                "topic": "in",
                "places": PLACES,
                "inputs_max": INPUTS_MAX,
                "aborts": 0.05,
                "seed": self.chance.random(),
            },
        }
        command = [sys.executable, "-m", "crash.transaction_worker", name]
        command += [str(self._diaries / name), json.dumps(settings)]
        with self._said.open("ab") as said:
            self.workers[name] = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=said, stderr=said)

    def kill_worker(self) -> None:
        """A worker dies in the middle of whatever it does, and another with its transactional id takes its place."""
        name = self.chance.choice(sorted(self.workers))
        self.workers[name].kill()
        self.workers[name].wait()
        self.counts["killed"] += 1
        self._start(name)

    def end_worker(self) -> None:
        """A worker is told to end and comes back, in a process of its own as before."""
        name = self.chance.choice(sorted(self.workers))
        self.workers[name].send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.workers[name].wait(10)
        self.workers[name].kill()
        self.workers[name].wait()
        self.counts["ended"] += 1
        self._start(name)

    def _replace_the_fallen(self) -> None:
        """A worker whose client says that it cannot go on ends, as a fenced one must; anything else is a bug."""
        for name, process in list(self.workers.items()):
            code = process.poll()
            if code is not None:
                assert code in FALLS, f"{name} ended with {code}:\n{self._said.read_text()[-4_000:]}"
                self.counts[FALLS[code]] += 1
                self._start(name)

    # --- how far it is

    def wait_for_commits(self, number: int) -> None:
        """Until so many more transactions are committed than now, or all inputs are."""
        goal = self.committed() + number
        self._wait(lambda: self.committed() >= goal or self.is_done(), f"{number} more commits did not come")

    def settle(self) -> None:
        """Until every input is committed; then the workers end."""
        self._wait(self.is_done, "the inputs were not all committed")
        for process in self.workers.values():
            process.send_signal(signal.SIGTERM)
        for process in self.workers.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)

    def committed(self) -> int:
        """How many transactions the workers know to be committed."""
        return sum(path.read_text().count('["committed"') for path in self._diaries.iterdir())

    def is_done(self) -> bool:
        """Whether the group's offsets stand at the end of every input partition."""
        return self._offsets() == {index: self._end(index) for index in range(INPUT_PARTITIONS)}

    def _end(self, index: int) -> int:
        return (self._inputs - index + INPUT_PARTITIONS - 1) // INPUT_PARTITIONS

    def _offsets(self) -> dict[int, int]:
        """The group's stable offsets, as far as they can be had now."""
        asked = OffsetFetchRequestTopic(name="in", partition_indexes=tuple(range(INPUT_PARTITIONS)))
        with contextlib.suppress(OSError), WireClient(self._port) as client:
            answer = client.ask(
                "OffsetFetch", 7, OffsetFetchRequest(group_id="copy", topics=(asked,), require_stable=True)
            )
            found = [partition for topic in answer.topics for partition in topic.partitions]
            return {
                partition.partition_index: partition.committed_offset for partition in found if not partition.error_code
            }
        return {}

    def _wait(self, is_so, complaint: str) -> None:
        end = time.monotonic() + DEADLINE_S
        progress = self.committed()
        while not is_so():
            if self.committed() != progress:
                progress, end = self.committed(), time.monotonic() + DEADLINE_S
            if time.monotonic() > end:
                raise AssertionError(f"{complaint}: {progress} commits, offsets {self._offsets()}\n{self._stacks()}")
            self._replace_the_fallen()
            time.sleep(LOOK_EVERY_S)

    def _stacks(self) -> str:
        """Where each worker is, in the words of its interpreter."""
        for process in self.workers.values():
            process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        return self._said.read_text()[-8_000:]

    # --- the account

    def account(self) -> str:
        """Assert that every input is there exactly once and nothing hangs; the figures of the run."""
        self._wait(lambda: hanging(self._port) == [], f"transactions hang: {hanging(self._port)}")
        transactions = self.transactions()
        outputs = read_committed(self.bootstrap)
        inputs: list[Input] = [(n % INPUT_PARTITIONS, n // INPUT_PARTITIONS) for n in range(self._inputs)]
        violations = check(inputs, transactions, outputs, places=PLACES)
        assert violations == [], [str(violation) for violation in violations[:10]]
        assert self.is_done(), self._offsets()
        endings = {ending.name: sum(t.ending is ending for t in transactions) for ending in Ending}
        return f"{endings}, {len(inputs)} inputs, workers {self.counts}"

    def transactions(self) -> list[Transaction]:
        """What the workers wrote down."""
        inputs: dict[str, frozenset[Input]] = {}
        endings: dict[str, Ending] = {}
        for path in self._diaries.iterdir():
            lines = path.read_text().splitlines(keepends=True)
            for what, name, *rest in (json.loads(line) for line in lines if line.endswith("\n")):
                if what == "began":
                    assert name not in inputs, f"two transactions are called {name}: the diaries say nothing"
                    inputs[name] = frozenset((partition, offset) for partition, offset in rest[0])
                else:
                    endings[name] = Ending[what.upper()]
        return [Transaction(name, taken, endings.get(name, Ending.UNKNOWN)) for name, taken in inputs.items()]


def read_committed(bootstrap: str) -> list[Output]:
    """Everything a reader of committed records gets from the output places, from their start to their end."""
    settings = {**QUIET, "bootstrap.servers": bootstrap, "group.id": "auditor", "enable.auto.commit": False}
    settings |= {"isolation.level": "read_committed", "enable.partition.eof": True}
    outputs: list[Output] = []
    open_places = set(PLACES)
    end = time.monotonic() + DEADLINE_S
    with contextlib.closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in PLACES])
        while open_places:
            assert time.monotonic() < end, f"no end was seen of {open_places}"
            for message in consumer.consume(500, timeout=0.2):
                place = (message.topic(), message.partition())
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    open_places.discard(place)
                    continue
                name, partition, offset = json.loads(message.value())
                outputs.append(Output(place, message.offset(), name, (partition, offset)))
    return outputs


def hanging(port: int) -> list[str]:
    """Open transactions, and partitions whose last stable offset is not their end: at rest there are none."""
    everywhere = {**TOPICS, "__consumer_offsets": OFFSETS_PARTITIONS}
    with WireClient(port) as client:
        asked = tuple(TopicRequest(name=name, partition_indexes=tuple(range(n))) for name, n in everywhere.items())
        answer = client.ask("DescribeProducers", 0, DescribeProducersRequest(topics=asked))
        open_transactions = [
            f"{topic.name}-{partition.partition_index}: {producer}"
            for topic in answer.topics
            for partition in topic.partitions
            for producer in partition.active_producers
            if partition.error_code or producer.current_txn_start_offset >= 0
        ]
        stable, ends = (_latest(client, everywhere, isolation_level=level) for level in (1, 0))
    return open_transactions + [f"{place}: {stable[place]} of {ends[place]}" for place in ends if stable != ends]


def _latest(client: WireClient, topics: dict[str, int], *, isolation_level: int) -> dict[tuple[str, int], int]:
    asked = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)),
        )
        for name, count in topics.items()
    )
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=asked)
    answer = client.ask("ListOffsets", 9, request)
    found = {(topic.name, p.partition_index): p for topic in answer.topics for p in topic.partitions}
    assert all(partition.error_code == 0 for partition in found.values()), found
    return {place: partition.offset for place, partition in found.items()}
