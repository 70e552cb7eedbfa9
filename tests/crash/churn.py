"""A consumer group whose members come, go and die while its broker does the same, and the account at the end."""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from crash.group_member import QUIET
from crash.load import DEADLINE_S, Client
from headrace.testing.broker_process import BrokerProcess
from headrace.testing.group_history import Event, What, check, gaps, owners

SESSION_S = 3.0
LEAVE_S = 15.0
SEND_EVERY_S = 0.004
QUIET_POLL_S = 0.05
BROKER_SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": f"{SESSION_S * 1000:.0f}",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "4",
}
CLASSIC = {"group.protocol": "classic", "session.timeout.ms": SESSION_S * 1000, "heartbeat.interval.ms": 300}
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {**CLASSIC, "partition.assignment.strategy": "range,roundrobin"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


def read_diary(text: str) -> list[Event]:
    """The events of a member's file; a line that was cut off has not happened."""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    rows = [json.loads(line) for line in lines]
    return [Event(at_s, who, What(what), partition, offset) for at_s, who, what, partition, offset in rows]


class PacedProducer(Client):
    """Writes to all partitions at an even pace, whatever happens, and notes where each record is."""

    def __init__(self, port: int, topic: str, partitions: int) -> None:
        super().__init__("producer", port, [(topic, index) for index in range(partitions)], random.Random(0))
        self.events: list[Event] = []

    def work(self) -> None:
        """Until told to end; then wait for what is under way."""
        producer = Producer(
            {
                **QUIET,
                "bootstrap.servers": f"127.0.0.1:{self.port}",
                "enable.idempotence": True,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 300_000,
            }
        )
        for number in count():
            topic, partition = self.places[number % len(self.places)]
            producer.produce(topic, b"%d" % number, partition=partition, on_delivery=self._delivered)
            producer.poll(0)
            if self.ending.wait(SEND_EVERY_S):
                break
        assert producer.flush(DEADLINE_S) == 0, "not everything was acknowledged"

    def _delivered(self, error, message) -> None:
        assert error is None, error
        at_s = time.monotonic()
        self.events.append(Event(at_s, self.name, What.PRODUCED, message.partition(), message.offset()))


class Churn:
    """One group on one topic, and everything that happened to it."""

    def __init__(self, broker: BrokerProcess, chance: random.Random, *, protocol: str, partitions: int = 12) -> None:
        self.broker = broker
        self.chance = chance
        self.protocol = protocol
        self.topic = f"churn-{protocol}"
        self.partitions = partitions
        self.events: list[Event] = []
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        self.counts: dict[str, int] = dict.fromkeys(("join", "leave", "kill", "broker"), 0)
        self._diaries = broker.directory / f"diaries-{protocol}"
        self._diaries.mkdir()
        self._names = (f"member-{number}" for number in count())
        self._producer = PacedProducer(broker.port, self.topic, partitions)

    def __enter__(self):
        self._commit_beginnings()
        self._producer.start()
        return self

    def __exit__(self, kind, error, trace):
        self._producer.ending.set()
        for process in self.members.values():
            process.kill()
            process.wait()
        self._producer.join()

    def _commit_beginnings(self) -> None:
        """Have the group begin at offset 0 of every partition by its own word.

        Where nothing is committed librdkafka asks for the earliest offset, and if it loses the partition before the
        answer comes it asks again half a second later and then reads, as 2.16 does, what it no longer owns.
        """
        beginnings = [TopicPartition(self.topic, index, 0) for index in range(self.partitions)]
        with contextlib.closing(self._bystander()) as consumer:
            answered = consumer.commit(offsets=beginnings, asynchronous=False)
        assert all(answer.error is None for answer in answered)

    def _bystander(self) -> Consumer:
        """Who asks and tells of the group's offsets without being a member."""
        return Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": f"group-{self.protocol}", "log_level": 0}
        )

    # --- what is done to the group

    def join(self) -> None:
        """One member more."""
        name = next(self._names)
        settings = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": f"group-{self.protocol}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic": self.topic,
            **PROTOCOLS[self.protocol],
        }
        command = [sys.executable, "-m", "crash.group_member", name, str(self._diary(name)), json.dumps(settings)]
        self._note(name, What.JOINED)
        self.members[name] = subprocess.Popen(command, cwd=Path(__file__).parents[1])
        self.counts["join"] += 1

    def leave(self) -> None:
        """A member says good-bye; one that cannot find its way out is killed."""
        name = self.chance.choice(sorted(self.members))
        process = self.members.pop(name)
        self._note(name, What.LEAVING)
        process.send_signal(signal.SIGTERM)
        try:
            # Who is told before it is quite there ends by the signal itself.
            assert process.wait(LEAVE_S) in {0, -signal.SIGTERM}, f"{name} ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._note(name, What.GONE)
        self.counts["leave"] += 1

    def kill(self) -> None:
        """A member dies in the middle of whatever it does."""
        name = self.chance.choice(sorted(self.members))
        process = self.members.pop(name)
        process.kill()
        process.wait()
        self._note(name, What.GONE)
        self.counts["kill"] += 1

    def kill_broker(self) -> None:
        """The broker dies and comes back."""
        self._note("broker", What.BROKER_DOWN)
        self.broker.kill()
        self.broker.start()
        self._note("broker", What.BROKER_UP)
        self.counts["broker"] += 1

    # --- waiting and the account

    def wait_until_owned(self, *, within_s: float) -> None:
        """Until every partition has an owner."""
        self._wait(lambda: len(owners(self.history())) == self.partitions, within_s, "not every partition is owned")

    def settle(self, *, within_s: float) -> None:
        """Let the producer finish and the members commit everything there is."""
        self._producer.end()
        self.wait_until_owned(within_s=within_s)
        ends: dict[int, int] = {}
        for event in self._producer.events:
            ends[event.partition] = max(ends.get(event.partition, 0), event.offset + 1)
        self._wait(lambda: self._committed() == ends, within_s, "not everything was committed")
        self._note("history", What.END)

    def account(self, *, settle_s: float) -> str:
        """Assert that every promise was kept; the figures of the run."""
        events = self.history()
        violations = check(events, settle_s=settle_s)
        assert violations == [], [str(violation) for violation in violations[:10]]
        processed = [event for event in events if event.what is What.PROCESSED]
        once = {(event.partition, event.offset) for event in processed}
        longest = max((gap.seconds for gap in gaps(events)), default=0.0)
        return (
            f"{self.counts}, {len(once)} records, {len(processed) - len(once)} processed again, "
            f"no partition without an owner for longer than {longest:.1f} s"
        )

    def history(self) -> list[Event]:
        """Everything anybody wrote down so far."""
        told = [event for path in sorted(self._diaries.iterdir()) for event in read_diary(path.read_text())]
        return self.events + list(self._producer.events) + told

    def _committed(self) -> dict[int, int]:
        with contextlib.closing(self._bystander()) as consumer:
            asked = [TopicPartition(self.topic, index) for index in range(self.partitions)]
            return {found.partition: found.offset for found in consumer.committed(asked, timeout=DEADLINE_S)}

    def _wait(self, is_so, within_s: float, complaint: str) -> None:
        end = time.monotonic() + within_s
        while not is_so():
            assert time.monotonic() < end, f"{complaint} after {within_s} s"
            for name, process in self.members.items():
                assert process.poll() is None, f"{name} ended by itself with {process.returncode}"
            time.sleep(QUIET_POLL_S)

    def _diary(self, name: str) -> Path:
        return self._diaries / f"{name}.jsonl"

    def _note(self, who: str, what: What) -> None:
        self.events.append(Event(time.monotonic(), who, what))
