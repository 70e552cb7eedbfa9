"""A replicated topic as a test meets it: a writer that notes what it was promised, a reader, looks at the replicas."""

import threading

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30


def create(group, name, *, partitions=1, replicas=3, **configs):
    """Make a topic, and wait until every broker plays its part in it."""
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    wanted = NewTopic(
        name, partitions, replicas, config={key.replace("_", "."): value for key, value in configs.items()}
    )
    for made in admin.create_topics([wanted]).values():
        made.result(PATIENCE_S)
    for node, broker in group.brokers.items():
        group.until(node, lambda metadata, broker=broker: plays_its_part(broker, name))


def plays_its_part(broker, topic):
    """Whether a broker holds its replicas of a topic, and knows who leads them."""
    known = broker.metadata.topics.get(topic)
    if known is None or len(broker.config.roles & {"broker"}) == 0:
        return known is not None
    held = [
        broker.partitions.find((topic, state.index)) for state in known.partitions if broker.node_id in state.replicas
    ]
    return all(partition is not None and partition.leader_epoch >= 0 for partition in held)


class Writer:
    """An idempotent producer, and what was promised to it."""

    def __init__(self, group, topic, **settings):
        self.topic = topic
        self.acked = []
        self.failed = []
        self._news = threading.Condition()
        self._producer = Producer(
            {
                "bootstrap.servers": group.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 1000,
                **settings,
            }
        )

    def _delivered(self, error, message):
        with self._news:
            if error is not None:
                self.failed.append(error)
            else:
                self.acked.append((message.offset(), message.value()))
            self._news.notify_all()

    def until_more(self):
        """Wait until somebody else's writing got on."""
        with self._news:
            count = len(self.acked)
            assert self._news.wait_for(lambda: len(self.acked) > count, PATIENCE_S)

    def write(self, *values):
        """Send, and wait for all answers."""
        for value in values:
            self._producer.produce(self.topic, value, partition=0, on_delivery=self._delivered)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0
        return self.acked


def read(group, topic, count, **settings):
    """The first `count` records of partition 0, with their offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": group.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.ms": 20,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    try:
        while len(found) < count:
            messages = consumer.consume(count - len(found), timeout=PATIENCE_S)
            assert messages, f"only {len(found)} of {count} records"
            found += [(message.offset(), message.value()) for message in messages if message.error() is None]
    finally:
        consumer.close()
    return found


def partition_of(group, node, topic):
    """Partition 0 of a topic as a node has it."""
    return group.brokers[node].partitions.find((topic, 0))


def state_of(group, topic):
    """Partition 0 of a topic as the active controller has it."""
    return group.ask(group.controller, lambda broker: broker.metadata.topics[topic].partitions[0])


def until_in_sync(group, topic, count):
    """Wait until so many replicas are in sync, by the word of the active controller."""
    group.until(group.controller, lambda metadata: len(metadata.topics[topic].partitions[0].isr) == count)


def until_led_by_another(group, topic, node):
    """Wait until a broker that was killed leads no more; answers who does."""

    def is_led_by_another(metadata):
        return metadata.topics[topic].partitions[0].leader not in {node, -1}

    group.until(group.controller, is_led_by_another)
    return group.leader_of(topic, 0)


def bytes_of(group, node, topic):
    """The batches of partition 0 as they lie on a node's disk."""
    return b"".join(path.read_bytes() for path in sorted((group.directory / str(node)).glob(f"d*/{topic}-0/*.log")))
