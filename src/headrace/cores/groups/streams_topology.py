"""What a topology means on this cluster: how many tasks it has, and which topics of its own are missing.

A topology names the topics each subtopology reads. Those of the user must be there. Repartition topics, between two
subtopologies, and changelogs, behind state stores, belong to the application: how many partitions they need follows
from what their subtopology reads, and topics that are read together need the same number.
A topology that can never work is refused; one that only waits for topics, or does not fit to those that are there, gets
a status and no tasks until that has changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.cores.groups.streams_limits import SUBTOPOLOGIES_MAX, TOPICS_MAX, StreamsLimits
from headrace.cores.metadata import INTERNAL_TOPICS, Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import topic_name_fault
from headrace.model.streams_group_records import CopartitionGroup, StreamsGroupTopologyValue, Subtopology, TopicInfo

Counts = dict[str, int]
"""Partitions by topic."""

NAMES_SHOWN_MAX = 3


class StatusCode(IntEnum):
    """What a member is told besides its tasks, by Kafka's numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(Struct, frozen=True, kw_only=True):
    """One thing that a member is told, and the sentence that goes with it."""

    code: StatusCode
    detail: str


class ConfiguredTopology(Struct, frozen=True, kw_only=True):
    """A topology with the numbers filled in; without tasks if a fault stands in the way."""

    subtopologies: Mapping[str, Subtopology] = field(default_factory=dict)
    """As they were told, but internal topics have their number of partitions."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[TopicInfo, ...] = ()
    """Internal topics to be created."""
    fault: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its tasks can run."""
        return self.fault is None


class _Unfit(Exception):
    """The topics that are there do not fit the topology."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code=code, detail=detail)


# --- questions


def read_topics(subtopology: Subtopology) -> list[str]:
    """The topics a subtopology reads."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def required_topics(topology: StreamsGroupTopologyValue) -> list[str]:
    """All topics that must be there for a topology to run."""
    return [
        name
        for subtopology in topology.subtopologies
        for name in (*read_topics(subtopology), *(topic.name for topic in subtopology.state_changelog_topics))
    ]


def are_same(one: StreamsGroupTopologyValue, other: StreamsGroupTopologyValue) -> bool:
    """Whether two topologies are the same but for the order of their subtopologies."""
    return one.epoch == other.epoch and _by_id(one) == _by_id(other)


def _by_id(topology: StreamsGroupTopologyValue) -> dict[str, Subtopology]:
    return {subtopology.subtopology_id: subtopology for subtopology in topology.subtopologies}


# --- refusals


def check_topology(topology: StreamsGroupTopologyValue) -> None:
    """KafkaError unless a topology makes sense by itself."""
    names = required_topics(topology)
    if topology.epoch < 0:
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "The topology epoch must not be negative.")
    if len(topology.subtopologies) > SUBTOPOLOGIES_MAX or len(names) > TOPICS_MAX:
        raise _invalid(f"A topology may have {SUBTOPOLOGIES_MAX} subtopologies and name {TOPICS_MAX} topics at most.")
    prohibited = sorted(INTERNAL_TOPICS.intersection(names))
    if prohibited:
        raise _invalid(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
    wrong = [name for name in names if topic_name_fault(name) is not None]
    if wrong:
        raise _invalid(f"Topic names {','.join(wrong[:NAMES_SHOWN_MAX])} are not valid topic names.")
    if len(_by_id(topology)) < len(topology.subtopologies):
        raise _invalid("The ids of subtopologies must be different.")
    for subtopology in topology.subtopologies:
        _check_subtopology(subtopology)


def _check_subtopology(subtopology: Subtopology) -> None:
    name = subtopology.subtopology_id
    if not read_topics(subtopology):
        raise _invalid(f"No source topics found for subtopology {name}")
    for topic in subtopology.state_changelog_topics:
        if topic.partitions != 0:
            raise _invalid(
                f"Changelog topic {topic.name} must have an undefined partition count, "
                f"but it is set to {topic.partitions}."
            )
    if any(topic.partitions < 0 for topic in subtopology.repartition_source_topics):
        raise _invalid(f"A repartition topic of subtopology {name} has a negative number of partitions.")
    for group in subtopology.copartition_groups:
        _check_places(group.source_topics, subtopology.source_topics, name)
        _check_places(group.repartition_source_topics, subtopology.repartition_source_topics, name)


def _check_places(places: Iterable[int], topics: Sequence[object], name: str) -> None:
    if any(not 0 <= place < len(topics) for place in places):
        raise _invalid(f"A copartition group of subtopology {name} names a topic that is not there.")


def _invalid(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, sentence)


# --- numbers


def configure(topology: StreamsGroupTopologyValue, metadata: Metadata, limits: StreamsLimits) -> ConfiguredTopology:
    """Fill in the numbers; KafkaError if that can never be done."""
    existing = {
        name: len(metadata.topics[name].partitions) for name in required_topics(topology) if name in metadata.topics
    }
    try:
        _check_sources(topology, existing)
        decided = _decided_counts(topology, existing)
        subtopologies = {each.subtopology_id: _filled_in(each, decided) for each in topology.subtopologies}
        missing = _missing_topics(subtopologies.values(), existing)
    except _Unfit as unfit:
        return ConfiguredTopology(fault=unfit.status)
    counts = decided | existing
    task_counts = {name: max(counts[topic] for topic in read_topics(each)) for name, each in subtopologies.items()}
    if sum(task_counts.values()) > limits.tasks_max:
        raise _invalid(f"The topology has {sum(task_counts.values())} tasks, {limits.tasks_max} are possible.")
    fault = None
    if missing:
        detail = f"Internal topics are missing: {_shown(topic.name for topic in missing)}"
        fault = Status(code=StatusCode.MISSING_INTERNAL_TOPICS, detail=detail)
    return ConfiguredTopology(subtopologies=subtopologies, task_counts=task_counts, missing=missing, fault=fault)


def _check_sources(topology: StreamsGroupTopologyValue, existing: Counts) -> None:
    missing = {name for each in topology.subtopologies for name in each.source_topics if name not in existing}
    if missing:
        raise _Unfit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_shown(sorted(missing))} are missing.")


def _decided_counts(topology: StreamsGroupTopologyValue, existing: Counts) -> Counts:
    """The partitions that internal topics are to have."""
    decided = _repartition_counts(topology, existing)
    repartition = [topic for each in topology.subtopologies for topic in each.repartition_source_topics]
    fixed = {topic.name for topic in repartition if topic.partitions}
    names = {topic.name for topic in repartition}
    for subtopology in topology.subtopologies:
        for group in subtopology.copartition_groups:
            counts = {name: existing.get(name) or decided[name] for name in _names(group, subtopology)}
            _copartition(counts, names, fixed, decided)
    for subtopology in topology.subtopologies:
        widest = max(existing.get(name) or decided[name] for name in read_topics(subtopology))
        decided |= {topic.name: widest for topic in subtopology.state_changelog_topics}
    return decided


def _repartition_counts(topology: StreamsGroupTopologyValue, existing: Counts) -> Counts:
    """Partitions of repartition topics: those asked for, or as many as what the subtopology before them reads has."""
    counts = {
        topic.name: topic.partitions
        for each in topology.subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions
    }
    readers: dict[str, list[Subtopology]] = {}
    for each in topology.subtopologies:
        for topic in each.repartition_source_topics:
            readers.setdefault(topic.name, []).append(each)
    waiting = deque(topology.subtopologies)
    done: set[str] = set()
    while waiting:
        subtopology = waiting.popleft()
        width = _width(subtopology, counts, existing)
        if width is None or subtopology.subtopology_id in done:
            continue
        done.add(subtopology.subtopology_id)
        for sink in subtopology.repartition_sink_topics:
            if sink not in counts:
                counts[sink] = width
                waiting.extend(readers.get(sink, ()))
    if any(sink not in counts for each in topology.subtopologies for sink in each.repartition_sink_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics. "
            "There may be loops in the topology that cannot be resolved."
        )
    if any(topic.name not in counts for each in topology.subtopologies for topic in each.repartition_source_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, "
            "because a repartition source topic is never used as a sink topic."
        )
    return counts


def _width(subtopology: Subtopology, counts: Counts, existing: Counts) -> int | None:
    """The most partitions of a topic that a subtopology reads, as far as that is known."""
    known = [counts[topic.name] for topic in subtopology.repartition_source_topics if topic.name in counts]
    known += [existing[name] for name in subtopology.source_topics if name in existing]
    return max(known, default=None)


def _names(group: CopartitionGroup, subtopology: Subtopology) -> list[str]:
    return [
        *(subtopology.source_topics[place] for place in group.source_topics),
        *(subtopology.repartition_source_topics[place].name for place in group.repartition_source_topics),
    ]


def _copartition(counts: Counts, repartition: set[str], fixed: set[str], decided: Counts) -> None:
    """Give topics that are read together the same number of partitions, where there is a choice."""
    given = {name: count for name, count in counts.items() if name not in repartition}
    chosen = {name: count for name, count in counts.items() if name in fixed}
    # The user's topics decide; without one of them in the group, topics whose number was asked for.
    leading = given or chosen or {"": max(counts.values(), default=0)}
    if len(set(leading.values())) > 1:
        raise _Unfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{_listed(leading)}]",
        )
    width = next(iter(leading.values()))
    for name in counts:
        if name not in repartition:
            continue
        if name in fixed and counts[name] != width:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{counts[name]}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{width}] of the source topic.",
            )
        decided[name] = width


def _listed(counts: Counts) -> str:
    return "{" + ", ".join(f"{name}={counts[name]}" for name in sorted(counts)) + "}"


def _filled_in(subtopology: Subtopology, decided: Counts) -> Subtopology:
    def fill(topics: tuple[TopicInfo, ...]) -> tuple[TopicInfo, ...]:
        return tuple(replace(topic, partitions=topic.partitions or decided[topic.name]) for topic in topics)

    return replace(
        subtopology,
        repartition_source_topics=fill(subtopology.repartition_source_topics),
        state_changelog_topics=fill(subtopology.state_changelog_topics),
    )


def _missing_topics(subtopologies: Iterable[Subtopology], existing: Counts) -> tuple[TopicInfo, ...]:
    """Internal topics that are not there; those that are must have their number of partitions."""
    internal = {
        topic.name: topic
        for each in subtopologies
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    for name, topic in internal.items():
        found = existing.get(name, topic.partitions)
        if found != topic.partitions:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {topic.partitions}, found {found}",
            )
    return tuple(topic for name, topic in sorted(internal.items()) if name not in existing)


def _shown(names: Iterable[str]) -> str:
    """A few of the names, and how many more there are."""
    names = list(names)
    more = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {more} additional topics" if more > 0 else "")
