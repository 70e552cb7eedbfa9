"""A member of a consumer group as a process of its own, there to be killed: `group_member.py NAME FILE SETTINGS`.

It processes what it is given, commits now and then, and appends each event to its file before it goes on, so that
whatever a signal cuts off, the file is true. SETTINGS is a JSON object: the topic, and what librdkafka is given.
It imports nothing of the project, so that twenty of them start in a moment.
"""

import contextlib
import json
import os
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

POLL_S = 0.1
COMMIT_EVERY_S = 0.25
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 5_000}


class Diary:
    """Events in a file: one system call each, so a line is there whole or not at all."""

    def __init__(self, path: str, who: str) -> None:
        self._who = who
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, what: str, partition: int = -1, offset: int = -1) -> None:
        """Write down what happens now."""
        line = json.dumps([time.monotonic(), self._who, what, partition, offset])
        os.write(self._file, line.encode() + b"\n")


class Member:
    """Polls, processes and commits until it is told to leave."""

    def __init__(self, topic: str, settings: dict, diary: Diary) -> None:
        self.leaving = False
        self._topic = topic
        self._diary = diary
        self._uncommitted: dict[int, int] = {}
        self._consumer = Consumer({**QUIET, **settings})

    def run(self) -> None:
        """Join, work, leave."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost_all
        )
        due = time.monotonic() + COMMIT_EVERY_S
        while not self.leaving:
            message = self._consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                self._diary.note("processed", message.partition(), message.offset())
                self._uncommitted[message.partition()] = message.offset() + 1
            if time.monotonic() > due:
                self._commit(set(self._uncommitted))
                due = time.monotonic() + COMMIT_EVERY_S
        self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._diary.note("assigned", partition.partition)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit({partition.partition for partition in partitions})
        self._forget("revoked", partitions)

    def _lost_all(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget("lost", partitions)

    def _forget(self, what: str, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._uncommitted.pop(partition.partition, None)
            self._diary.note(what, partition.partition)

    def _commit(self, wanted: set[int]) -> None:
        """Commit and wait for the answer; what failed stays uncommitted and is tried again with the next."""
        offsets = {partition: offset for partition, offset in self._uncommitted.items() if partition in wanted}
        if not offsets:
            return
        for partition, offset in offsets.items():
            self._diary.note("committing", partition, offset)
        done: set[int] = set()
        with contextlib.suppress(KafkaException):
            asked = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
            answered = self._consumer.commit(offsets=asked, asynchronous=False)
            done = {answer.partition for answer in answered if answer.error is None}
        for partition, offset in offsets.items():
            self._diary.note("committed" if partition in done else "commit-failed", partition, offset)
            if partition in done:
                del self._uncommitted[partition]


def main() -> None:
    """Run until SIGTERM."""
    name, path, text = sys.argv[1:]
    settings = json.loads(text)
    member = Member(settings.pop("topic"), settings, Diary(path, name))

    def leave(*_) -> None:
        member.leaving = True

    signal.signal(signal.SIGTERM, leave)
    member.run()


if __name__ == "__main__":
    main()
