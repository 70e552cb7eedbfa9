"""Topics for a test to read: created, filled and emptied through Headrace's own clients, on any broker."""

import time

from headrace import KafkaAdmin, KafkaProducer
from headrace.client.admin_values import NewTopic
from headrace.client.records import TopicPartition

_CREATED_S = 20.0


class Topics:
    """The topics of one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.admin = KafkaAdmin(bootstrap_servers=bootstrap)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.admin.close()

    def create(self, name: str, partitions: int = 1, **configs: str) -> str:
        """A new topic; settings with underscores for dots. Gives its name, once its partitions have leaders."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        self.wait_for(name, partitions)
        return name

    def wait_for(self, name: str, partitions: int) -> None:
        """Ask until every partition has a leader that answers."""
        deadline = time.monotonic() + _CREATED_S
        while True:
            try:
                return self.ends(name, partitions)
            except Exception:
                if time.monotonic() > deadline:
                    raise

    def wait_for_markers(self, name: str) -> None:
        """Ask until the transactions in partition 0 are over for readers, a little after their producers were told."""
        deadline = time.monotonic() + _CREATED_S
        while self.ends(name, isolation_level="read_committed") != self.ends(name):
            assert time.monotonic() < deadline, f"a transaction is still open in {name}"

    def ends(self, name: str, partitions: int = 1, spec: str = "latest", **options: str) -> dict[int, int]:
        """Where the partitions end, or begin."""
        places = [TopicPartition(name, number) for number in range(partitions)]
        found = self.admin.list_offsets(dict.fromkeys(places, spec), **options)
        return {place.partition: one.offset for place, one in found.items()}

    def send(self, name: str, values, *, partition: int | None = 0, **options) -> None:
        """Send values, each bytes, None, or keyword arguments of `KafkaProducer.send`."""
        with self.producer(**options) as producer:
            for value in values:
                given = value if isinstance(value, dict) else {"value": value}
                producer.send(name, **{"partition": partition, **given})

    def producer(self, **options) -> KafkaProducer:
        """A producer; close it."""
        return KafkaProducer(bootstrap_servers=self._bootstrap, **options)

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        """Let the first records go, as retention would."""
        self.admin.delete_records({TopicPartition(name, partition): before})

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until nobody knows it any more."""
        self.admin.delete_topics([name])
        deadline = time.monotonic() + _CREATED_S
        while name in self.admin.list_topics():
            assert time.monotonic() < deadline, f"{name} is still there"

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """What a group has committed."""
        return {place: one.offset for place, one in self.admin.list_group_offsets(group).items()}
