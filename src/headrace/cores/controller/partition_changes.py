"""Changes of many partitions by one command, each decided on what the ones before it made of the partition."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from headrace.cores.controller.partition_change import Election, Intent, partition_change, without
from headrace.cores.controller.placement import is_online
from headrace.cores.controller.policy import Policy, elr_enabled
from headrace.cores.metadata import Metadata, PartitionState, Topic, merged
from headrace.cores.partition_index import PartitionKey
from headrace.model.metadata_records import MetadataRecord, PartitionChangeRecord

NOBODY = -1


class PartitionChanges:
    """The records a command makes of its intents, and the partitions as they will be."""

    __slots__ = ("_has_elr", "_leaving", "_metadata", "_policy", "_returning", "_rules", "_states", "records")

    def __init__(self, metadata: Metadata, policy: Policy, *, leaving: int = NOBODY, returning: int = NOBODY) -> None:
        self.records: list[MetadataRecord] = []
        self._metadata = metadata
        self._policy = policy
        self._leaving = leaving
        """Must not lead any more, though the state does not say so yet."""
        self._returning = returning
        """May lead, though the state still has it fenced."""
        self._has_elr = elr_enabled(metadata)
        self._rules: dict[UUID, tuple[int, bool]] = {}
        self._states: dict[PartitionKey, PartitionState] = {}

    def state(self, topic: Topic, index: int) -> PartitionState:
        """A partition after what was decided so far."""
        return self._states.get((topic.topic_id, index)) or topic.partitions[index]

    def change(self, topic: Topic, index: int, intent: Intent) -> PartitionChangeRecord | None:
        """Decide on one partition; None if nothing is to change."""
        state = self.state(topic, index)
        min_isr, _ = self._rule(topic)
        record = partition_change(
            self._metadata,
            topic.topic_id,
            state,
            intent,
            min_isr=min_isr,
            has_elr=self._has_elr,
            may_lead=lambda replica: self.may_lead(state, replica, moved=intent.directory),
        )
        if record is not None:
            self.records.append(record)
            self._states[topic.topic_id, index] = merged(state, record)
        return record

    def election(self, topic: Topic) -> Election:
        """How hard to look for a leader of this topic's when it is not asked for."""
        return Election.UNCLEAN if self._rule(topic)[1] else Election.ONLINE

    def may_lead(self, state: PartitionState, replica: int, *, moved: tuple[int, UUID] | None = None) -> bool:
        """Whether a replica can lead as far as its broker and its log dir are concerned; `moved` is one's new dir."""
        if replica == self._leaving or not (replica == self._returning or self._metadata.is_active(replica)):
            return False
        broker = self._metadata.brokers.get(replica)
        if broker is None or replica not in state.replicas:
            return False
        if moved is not None and moved[0] == replica:
            return is_online(broker, moved[1])
        return not state.directories or is_online(broker, state.directories[state.replicas.index(replica)])

    def without_broker(self, keys: Iterable[PartitionKey], broker: int, *, is_unclean: bool = False) -> None:
        """Take a broker out of every ISR among these partitions, and out of the ELR if it lost what it had."""
        for topic_id, index in keys:
            topic = self._metadata.topics_by_id[topic_id]
            intent = Intent(
                isr=without(self.state(topic, index).isr, (broker,)),
                unclean_shutdown=broker if is_unclean else NOBODY,
                election=self.election(topic),
            )
            self.change(topic, index, intent)

    def _rule(self, topic: Topic) -> tuple[int, bool]:
        rule = self._rules.get(topic.topic_id)
        if rule is None:
            rule = self._policy.min_isr(self._metadata, topic), self._policy.is_unclean(self._metadata, topic)
            self._rules[topic.topic_id] = rule
        return rule


def partitions_in_isr(metadata: Metadata, broker: int) -> list[PartitionKey]:
    """Partitions that have a broker in sync."""
    topics = metadata.topics_by_id
    held = metadata.index.replicas.get(broker, ())
    return [key for key in held if broker in topics[key[0]].partitions[key[1]].isr]


def partitions_in_elr(metadata: Metadata, broker: int) -> list[PartitionKey]:
    """Partitions for which a broker is eligible without being in sync."""
    topics = metadata.topics_by_id
    held = metadata.index.replicas.get(broker, ())
    return [key for key in held if broker in topics[key[0]].partitions[key[1]].elr]
