"""What all messages of the quorum share on the wire: the one partition they are about, leaders, directories, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft.voters import Endpoint, Endpoints, ReplicaKey
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

METADATA_TOPIC_ID = UUID(int=1)
"""The id Kafka reserves for the metadata topic."""
PARTITION = 0
ALL_OF_IT = frozenset({ErrorCode.INCONSISTENT_CLUSTER_ID})
"""Errors that are told of the request as a whole, not of its partition."""

Form = TypeVar("Form")


def only_partition(topics: Sequence[Any], name: Callable[[Any], object], wanted: object = METADATA_TOPIC) -> Any:
    """The one partition of the one topic in a message, if it is that of the metadata; None if not."""
    if len(topics) != 1 or len(topics[0].partitions) != 1 or name(topics[0]) != wanted:
        return None
    return topics[0].partitions[0]


def asked_partition(topics: Sequence[Any]) -> Any:
    """The partition a request of voters is about; None if it is not the one there is."""
    found = only_partition(topics, lambda topic: topic.topic_name)
    return found if found is not None and found.partition_index == PARTITION else None


def directory_on_wire(key: ReplicaKey | None) -> UUID:
    """A replica's directory as the wire has it."""
    return key.directory_id or ZERO_ID if key is not None else ZERO_ID


def replica_key(node_id: int, directory_id: UUID) -> ReplicaKey:
    """A replica as the wire names it."""
    return ReplicaKey(node_id, directory_id if directory_id != ZERO_ID else None)


def voter_key(node_id: int, directory_id: UUID) -> ReplicaKey | None:
    """Whom a request is meant for; None if it does not say."""
    return replica_key(node_id, directory_id) if node_id >= 0 else None


def listening_at(endpoints: Endpoints, listener: str) -> Endpoint | None:
    """The endpoint of a listener, or the first if there is none of that name."""
    return next((one for one in endpoints if one.name == listener), endpoints[0] if endpoints else None)


def leader_nodes(leader_id: int, endpoints: Endpoints, listener: str, form: Callable[..., Form]) -> tuple[Form, ...]:
    """Where the leader listens, as an answer tells it: one node, or none if it is unknown."""
    found = listening_at(endpoints, listener)
    return (form(node_id=leader_id, host=found.host, port=found.port),) if found is not None and leader_id >= 0 else ()


def leader_endpoints(nodes: Sequence[Any], leader_id: int, listener: str) -> Endpoints:
    """The leader's endpoint in an answer."""
    return tuple(Endpoint(listener, node.host, node.port) for node in nodes if node.node_id == leader_id)


def endpoints_on_wire(endpoints: Endpoints, form: Callable[..., Form]) -> tuple[Form, ...]:
    """Endpoints with their listeners' names."""
    return tuple(form(name=one.name, host=one.host, port=one.port) for one in endpoints)


def endpoints_from_wire(listeners: Sequence[Any]) -> Endpoints:
    """Endpoints with their listeners' names."""
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)


def error_code(number: int) -> ErrorCode:
    """An error another node tells; one of later days is as good as unknown."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
