"""Consume, transform, produce in transactions, as a process of its own: `transaction_worker.py NAME FILE SETTINGS`.

Every input becomes a record in every output place, in one transaction with the inputs' offsets. What a transaction
began with and how it ended is appended to a file, so that whatever a signal cuts off, the file is true.
SETTINGS is a JSON object: what the clients are given, and `work`: topics, places, sizes and how much chance there is.
"""

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}
PATIENCE_S = 6.0
POLL_S = 0.1
FATAL_EXIT = 3
"""How a worker ends that was fenced, or whose client says that it cannot go on: another takes its place."""
STUCK_EXIT = 4
STUCK_S = 1.5 * PATIENCE_S
"""librdkafka may never return from send_offsets_to_transaction after its broker was restarted, whatever time it was
given (seen with Apache Kafka too): a worker whose call takes so much longer ends."""
STRAY_EXIT = 5
"""librdkafka (2.16) may hand out a record that it fetched for the assignment before, and a moment later ask for it
again for the new one, so that the same comes twice: a worker whose client goes back by itself ends."""


class Watchdog(threading.Thread):
    """Ends the process when a call takes far longer than it was allowed to."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.begun: float | None = None

    def run(self) -> None:
        """As long as the process lives."""
        while True:
            time.sleep(0.5)
            begun = self.begun
            if begun is not None and time.monotonic() - begun > STUCK_S:
                faulthandler.dump_traceback()
                os._exit(STUCK_EXIT)


class Worker:
    """One transactional id at work."""

    def __init__(self, name: str, path: str, settings: dict) -> None:
        work = settings.pop("work")
        self.ending = False
        # Process ids come again within an hour of campaigns; with the time of the start nobody has the name twice.
        self._name = f"{name}.{os.getpid()}.{time.time_ns()}"
        self._number = 0
        self._taken: list[Message] = []
        self._next: dict[int, int] = {}
        """Where each partition goes on, as long as it is ours."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._places = [tuple(place) for place in work["places"]]
        self._inputs_max = work["inputs_max"]
        self._aborts = work["aborts"]
        self._chance = random.Random(self._name + str(work["seed"]))
        common = {**QUIET, **settings.pop("common")}
        self._producer = Producer({**common, "transactional.id": name, **settings["producer"]})
        self._consumer = Consumer({**common, **settings["consumer"]})
        self._topic = work["topic"]
        self._watchdog = Watchdog()
        self._watchdog.start()

    def run(self) -> None:
        """Until told to end; an end in the middle of a transaction is as good as any."""
        self._producer.init_transactions(PATIENCE_S)
        self._consumer.subscribe([self._topic], on_assign=self._moved, on_revoke=self._moved, on_lost=self._moved)
        while not self.ending:
            self._take()
            if self._taken:
                self._transaction(list(self._taken))
        self._consumer.close()

    def _take(self) -> None:
        """A few inputs; only the first is waited for."""
        self._taken = []
        wanted = self._chance.randint(1, self._inputs_max)
        while len(self._taken) < wanted:
            message = self._consumer.poll(0 if self._taken else POLL_S)
            if message is None:
                break
            if message.error() is None:
                self._expect(message)
                self._taken.append(message)

    def _expect(self, message: Message) -> None:
        if message.offset() < self._next.get(message.partition(), 0):
            print(f"{self._name}: the client went back to {message.partition()}:{message.offset()}", flush=True)
            os._exit(STRAY_EXIT)
        self._next[message.partition()] = message.offset() + 1

    def _moved(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """What was taken and not begun is another's now, or will be read again."""
        self._taken.clear()
        self._next.clear()

    def _transaction(self, messages: list[Message]) -> None:
        self._number += 1
        name = f"{self._name}.{self._number}"
        self._note("began", name, [(message.partition(), message.offset()) for message in messages])
        aborted = self._chance.random() < self._aborts
        try:
            self._producer.begin_transaction()
            self._write(name, messages)
            offsets = {message.partition(): message.offset() + 1 for message in messages}
            self._until_done(
                self._producer.send_offsets_to_transaction,
                [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()],
                self._consumer.consumer_group_metadata(),
            )
            if not aborted:
                self._until_done(self._producer.commit_transaction)
                self._note("committed", name)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            aborted = True
        if aborted:
            self._until_done(self._producer.abort_transaction)
            self._note("aborted", name)
            self._rewind()

    def _write(self, name: str, messages: list[Message]) -> None:
        for message in messages:
            for topic, partition in self._places:
                value = json.dumps([name, message.partition(), message.offset()])
                self._producer.produce(topic, value.encode(), partition=partition)
                self._producer.poll(0)

    def _until_done(self, ask, *arguments) -> None:
        """Ask again as long as the client says that one may."""
        end = time.monotonic() + PATIENCE_S
        while True:
            self._watchdog.begun = time.monotonic()
            try:
                ask(*arguments, max(end - time.monotonic(), 0.1))
                return
            except KafkaException as failure:
                if not failure.args[0].retriable() or time.monotonic() > end:
                    raise
            finally:
                self._watchdog.begun = None

    def _rewind(self) -> None:
        """Back to what is committed, with everything that is ours now."""
        self._next.clear()
        for found in self._consumer.committed(self._consumer.assignment(), timeout=PATIENCE_S):
            self._consumer.seek(TopicPartition(self._topic, found.partition, max(found.offset, 0)))

    def _note(self, *what) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


def main() -> None:
    """Run until SIGTERM."""
    faulthandler.register(signal.SIGUSR1)
    name, path, text = sys.argv[1:]
    worker = Worker(name, path, json.loads(text))

    def end(*_) -> None:
        worker.ending = True

    signal.signal(signal.SIGTERM, end)
    try:
        worker.run()
    except KafkaException as failure:
        print(f"{name}: {failure}", flush=True)
        os._exit(FATAL_EXIT)


if __name__ == "__main__":
    main()
