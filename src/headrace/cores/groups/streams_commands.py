"""What members of streams groups and administrators ask, and what they are answered."""

from __future__ import annotations

from msgspec import Struct

from headrace.cores.groups.consumer_commands import NO_TIMEOUT
from headrace.cores.groups.streams_member import StreamsMember
from headrace.cores.groups.streams_tasks import Tasks
from headrace.cores.groups.streams_topology import Status
from headrace.model.streams_group_records import Endpoint, StreamsGroupTopologyValue, Subtopology, TopicInfo


class StreamsHeartbeat(Struct, frozen=True, kw_only=True):
    """A member says that it lives, what it is and which tasks it has; what has not changed may be left out (None)."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topology: StreamsGroupTopologyValue | None = None
    """Told by one who joins."""
    owned: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    is_shutting_down: bool = False
    """Whether the whole application is to stop."""
    endpoint_epoch: int = -1
    """The epoch of the endpoints that it knows."""


class EndpointPartitions(Struct, frozen=True, kw_only=True):
    """Which partitions' state can be asked for where."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    """Topics with their partitions."""
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class StreamsHeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """A member's epoch, what it should know, and its tasks if those have changed."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing: tuple[TopicInfo, ...] = ()
    """Internal topics that the application needs; whoever passes the answer on creates them."""


class DescribedStreamsGroup(Struct, frozen=True, kw_only=True):
    """A streams group as an administrator sees it."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[Subtopology, ...]
    members: tuple[tuple[StreamsMember, Tasks], ...]
    """Each with its target."""
