"""Which partitions' state can be asked for at which member (interactive queries)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.streams_commands import EndpointPartitions
from headrace.cores.groups.streams_topology import read_topics

if TYPE_CHECKING:
    from headrace.cores.groups.streams_group import StreamsGroup
    from headrace.cores.groups.streams_tasks import TaskIds
    from headrace.cores.metadata import Metadata


def endpoints_of(group: StreamsGroup, metadata: Metadata) -> tuple[EndpointPartitions, ...]:
    """All endpoints of a group's members, with the partitions that their tasks read."""
    return tuple(
        EndpointPartitions(
            endpoint=member.user_endpoint,
            active=_partitions(member.assigned.active, group, metadata),
            standby=_partitions(member.assigned.standby, group, metadata),
        )
        for member in group.members.values()
        if member.user_endpoint is not None
    )


def _partitions(tasks: TaskIds, group: StreamsGroup, metadata: Metadata) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The partitions that some tasks read, by topic; a topic may have fewer partitions than there are tasks."""
    subtopologies = {} if group.configured is None else group.configured.subtopologies
    found = []
    for subtopology in sorted(tasks.keys() & subtopologies.keys()):
        for topic in read_topics(subtopologies[subtopology]):
            known = metadata.topics.get(topic)
            count = 0 if known is None else len(known.partitions)
            partitions = tuple(sorted(partition for partition in tasks[subtopology] if partition < count))
            if partitions:
                found.append((topic, partitions))
    return tuple(found)
