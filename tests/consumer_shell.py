"""A coordinator with consumer groups, topics that come and go, and consumers that do as they are told."""

from functools import partial
from uuid import UUID

from group_shell import REBALANCE_MS, GroupShell
from headrace.cores.groups.consumer import describe, heartbeat, metadata_changed
from headrace.cores.groups.consumer_commands import ConsumerHeartbeat
from headrace.cores.groups.shard import Groups
from headrace.cores.metadata import Metadata
from headrace.model.errors import KafkaError
from headrace.model.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from headrace.settings.catalog import BROKER_SETTINGS

HEARTBEAT_MS = 5_000
SESSION_MS = 45_000


class Settings(dict):
    """The broker's settings: a few of the test's own, and the defaults."""

    def __missing__(self, name):
        return BROKER_SETTINGS[name].default


class ConsumerShell(GroupShell):
    """A core with topics, driven by a test."""

    def __init__(self, settings=None, *, topics=None, **limits):
        self.metadata = Metadata()
        self._next_topic = 1
        for name, partitions in (topics or {}).items():
            self._add_topic(name, partitions)
        # Assignments follow at once unless a test wants to see that they wait.
        self.settings = Settings({"group.consumer.assignment.interval.ms": 0, **(settings or {})})
        super().__init__(settings=self.settings, **limits)

    def _fresh(self):
        return Groups(self.metadata, lambda: self.limits)

    # --- topics

    def _add_topic(self, name, partitions):
        topic_id = UUID(int=1000 + self._next_topic)
        self._next_topic += 1
        self.metadata.replay(TopicRecord(name=name, topic_id=topic_id))
        self._add_partitions(topic_id, 0, partitions)

    def _add_partitions(self, topic_id, start, end):
        for index in range(start, end):
            self.metadata.replay(
                PartitionRecord(partition_id=index, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1)
            )

    def topic_id(self, name):
        """A topic's id."""
        return self.metadata.topics[name].topic_id

    def create_topic(self, name, partitions):
        """A topic comes."""
        self._add_topic(name, partitions)
        self._changed(name)

    def grow_topic(self, name, partitions):
        """A topic gets more partitions."""
        topic = self.metadata.topics[name]
        self._add_partitions(topic.topic_id, len(topic.partitions), partitions)
        self._changed(name)

    def delete_topic(self, name):
        """A topic goes."""
        self.metadata.replay(RemoveTopicRecord(topic_id=self.topic_id(name)))
        self._changed(name)

    def _changed(self, name):
        self.act(partial(metadata_changed, topic_names=[name]))

    def configure_group(self, group_id, name, value):
        """Give a group a setting of its own."""
        self.metadata.replay(ConfigRecord(resource_type=32, resource_name=group_id, name=name, value=value))

    # --- the members' words

    def beat(self, member_id, epoch, group_id="g", **fields):
        """Send a heartbeat; the answer, or the error."""
        if epoch == 0:
            fields = {"rebalance_timeout_ms": REBALANCE_MS, "owned": {}, "topics": ("orders",), **fields}
        command = ConsumerHeartbeat(
            **{
                "group_id": group_id,
                "member_id": member_id,
                "member_epoch": epoch,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                **fields,
            }
        )
        return self.answers[self.ask(partial(heartbeat, command=command))]

    def beat_error(self, member_id, epoch, group_id="g", **fields):
        """Send a heartbeat that is refused; the error code."""
        answer = self.beat(member_id, epoch, group_id, **fields)
        assert isinstance(answer, KafkaError), answer
        return answer.code

    def described(self, group_id="g"):
        """A consumer group as an administrator sees it."""
        return self.answers[self.ask(partial(describe, group_id=group_id))]

    def group(self, group_id="g"):
        """The group itself."""
        return self.core.groups[group_id]


class Consumer:
    """A member that does as it is told: it gives up what it may not own any more, and says so."""

    def __init__(self, shell, member_id, group_id="g", **wants):
        self.shell = shell
        self.member_id = member_id
        self.group_id = group_id
        self.wants = {"rebalance_timeout_ms": REBALANCE_MS, **({"topics": ("orders",)} | wants)}
        self.epoch = 0
        self.owned = {}
        self.told = {}
        """What it may own."""
        self.said = None
        """What it last said it owns."""
        self.is_unsure = False
        """Whether an answer got lost, so that the next heartbeat tells all and asks for all."""

    @property
    def partitions(self):
        """What it owns, as pairs of topic id and number."""
        return {(topic_id, index) for topic_id, indexes in self.owned.items() for index in indexes}

    def join(self):
        """Come with nothing."""
        self.epoch, self.owned, self.told = 0, {}, {}
        return self._send(owned={}, **self.wants)

    def beat(self, *, full=False, is_lost=False):
        """Send a heartbeat and hear the answer, unless it gets lost."""
        if self.epoch == 0:
            return self.join()
        if full or self.is_unsure:
            fields = {**self.wants, "owned": self.owned}
        else:
            # As real consumers do: what has not changed since the last heartbeat is left out.
            fields = {} if self.owned == self.said else {"owned": self.owned}
        return self._send(is_lost=is_lost, **fields)

    def _send(self, *, is_lost=False, **fields):
        if "instance_id" in self.wants:
            fields["instance_id"] = self.wants["instance_id"]
        answer = self.shell.beat(self.member_id, self.epoch, self.group_id, **fields)
        self.is_unsure = is_lost
        if not is_lost and "owned" in fields:
            self.said = dict(fields["owned"])
        if is_lost:
            return answer
        if isinstance(answer, KafkaError):
            self.abandon()
            return answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.told = {topic_id: frozenset(indexes) for topic_id, indexes in answer.assignment.items()}
            # What is new is its own at once; what is not there any more it gives up in its own time.
            for topic_id, indexes in self.told.items():
                self.owned[topic_id] = self.owned.get(topic_id, frozenset()) | indexes
        return answer

    def give_up(self):
        """Stop reading what it may not own any more."""
        kept = {topic_id: indexes & self.told.get(topic_id, frozenset()) for topic_id, indexes in self.owned.items()}
        self.owned = {topic_id: indexes for topic_id, indexes in kept.items() if indexes}

    def leave(self, epoch=-1):
        """Go, for good or for a while."""
        fields = {"instance_id": self.wants["instance_id"]} if "instance_id" in self.wants else {}
        answer = self.shell.beat(self.member_id, epoch, self.group_id, **fields)
        self.abandon()
        return answer

    def abandon(self):
        """Own nothing, and be nobody."""
        self.epoch, self.owned, self.told = 0, {}, {}


def settle(*consumers, rounds=12):
    """Let everyone give up and ask until nothing changes."""
    for _ in range(rounds):
        for consumer in consumers:
            consumer.give_up()
            consumer.beat()
