"""Real clients of a cluster whose brokers die: a transactional writer, a reader, and a copier of records."""

import contextlib

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from clients.libraries import Deadline

WAIT_S = 60.0
QUICK = {"reconnect.backoff.max.ms": 100, "retry.backoff.max.ms": 200, "log_level": 0}
"""Clients that look again soon; what they have to say about dead brokers is not worth reading."""


def create(group, name, *, partitions=3):
    """A topic with a replica on each of three brokers."""
    admin = AdminClient({"bootstrap.servers": group.bootstrap, **QUICK})
    (made,) = admin.create_topics([NewTopic(name, partitions, 3)]).values()
    made.result(WAIT_S)


def coordinator_of(group, kind, key):
    """The broker that coordinates a group or a transactional id: `kind` is the broker's attribute."""
    node = group.controller
    topic, index = group.ask(node, lambda it: (getattr(it, kind).topic, getattr(it, kind).partition_for(key)))
    return group.leader_of(topic, index)


def transactional(group, name):
    """A producer that has claimed its transactional id."""
    producer = Producer({"bootstrap.servers": group.bootstrap, "transactional.id": name, "linger.ms": 0, **QUICK})
    producer.init_transactions(WAIT_S)
    return producer


def member(group, name, **settings):
    """A member of a consumer group that commits only what it is told to."""
    return Consumer(
        {
            "bootstrap.servers": group.bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "topic.metadata.refresh.interval.ms": 500,
            **QUICK,
            **settings,
        }
    )


def written(group, topic, values, *, partitions=3):
    """Write values round the partitions, acknowledged by all in-sync replicas."""
    producer = Producer({"bootstrap.servers": group.bootstrap, "enable.idempotence": True, **QUICK})
    for number, value in enumerate(values):
        producer.produce(topic, str(value), partition=number % partitions)
    assert producer.flush(WAIT_S) == 0


def taken(consumer, count, deadline):
    """Poll until so many records came; errors that pass are passed over."""
    messages = []
    while len(messages) < count:
        deadline.check(f"{count} records")
        messages += [each for each in consumer.consume(count - len(messages), 0.2) if each.error() is None]
    return messages


def until_decided(group, topic, partitions):
    """Wait until no transaction is open: a commit is answered when it is decided, and its markers follow."""

    def decided(broker):
        held = (broker.partitions.find((topic, index)) for index in range(partitions))
        led = [one for one in held if one is not None and one.is_led]
        return sum(one.last_stable_offset == one.log.log_end_offset for one in led)

    deadline = Deadline(WAIT_S)
    while sum(group.ask(node, decided) for node in tuple(group.brokers)) < partitions:
        deadline.check("the end of every transaction")


def committed(group, topic, *, partitions=3):
    """All values that a reader of committed records sees, in the order of each partition."""
    until_decided(group, topic, partitions)
    values = {index: [] for index in range(partitions)}
    deadline, ended = Deadline(WAIT_S), set()
    with contextlib.closing(member(group, "auditor", **{"enable.partition.eof": True})) as consumer:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        while len(ended) < partitions:
            deadline.check("the end of every partition")
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    values[message.partition()].append(message.value().decode())
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
    return values


class Copier:
    """Copies a topic in transactions: what was read is committed together with what was written.

    Whatever goes wrong, a producer with the same transactional id takes over, and the group's offsets say where to go
    on: that is all an application has to do, and nothing may be lost or doubled by it.
    """

    def __init__(self, group, source, target, *, batch=5, **settings):
        self._group = group
        self._target = target
        self._batch = batch
        self.failures = 0
        self._producer = transactional(group, "copier")
        self._consumer = member(group, "copy", **settings)
        self._consumer.subscribe([source])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._consumer.close()

    def copy(self, count, after_each):
        """Copy so many records; `after_each` hears how many are copied, and may break things."""
        done, deadline = 0, Deadline(3 * WAIT_S)
        while done < count:
            messages = taken(self._consumer, min(self._batch, count - done), deadline)
            try:
                self._transact(messages)
            except KafkaException as error:
                print(f"after {done}: {error}")
                self.failures += 1
                self._producer = transactional(self._group, "copier")
                done = self._rewind()
            else:
                done += len(messages)
            after_each(done)

    def _transact(self, messages):
        producer = self._producer
        producer.begin_transaction()
        for message in messages:
            producer.produce(self._target, message.value(), partition=message.partition())
        assignment = self._consumer.assignment()
        positions = [place for place in self._consumer.position(assignment) if place.offset >= 0]
        producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), WAIT_S)
        producer.commit_transaction(WAIT_S)

    def _rewind(self):
        """Go back to what the group has committed; how many records that are."""
        places = self._consumer.committed(self._consumer.assignment(), WAIT_S)
        done = 0
        for place in places:
            assert place.error is None, place.error
            start = max(place.offset, 0)
            self._consumer.seek(TopicPartition(place.topic, place.partition, start))
            done += start
        return done
