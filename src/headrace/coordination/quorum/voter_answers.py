"""What a voter answers to Vote, BeginQuorumEpoch and EndQuorumEpoch: three messages of one form on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from headrace.coordination.quorum.wire_terms import (
    ALL_OF_IT,
    PARTITION,
    error_code,
    leader_endpoints,
    leader_nodes,
    only_partition,
)
from headrace.cores.metadata import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.raft import messages as core

Wire = TypeVar("Wire")
Answer = TypeVar("Answer")


def answer_to_wire(
    words: Any, form: Callable[..., Wire], response: core.Response, listener: str, **more: object
) -> Wire:
    """An answer for the wire; `words` is the module that has the message's parts, `more` what only it tells."""
    if response.error in ALL_OF_IT:
        return form(error_code=int(response.error))
    partition = words.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=int(response.error),
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        **more,
    )
    return form(
        topics=(words.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        node_endpoints=leader_nodes(response.leader_id, response.endpoints, listener, words.NodeEndpoint),
    )


def answer_from_wire(
    form: Callable[..., Answer],
    message: Any,
    listener: str,
    more: Callable[[Any], dict[str, object]] = lambda told: {},
) -> Answer | None:
    """An answer for the core, None if it makes no sense; `more` reads what only this message tells."""
    if message.error_code:
        return form(error=error_code(message.error_code))
    told = only_partition(message.topics, lambda topic: topic.topic_name)
    if told is None:
        return None
    return form(
        error=error_code(told.error_code),
        leader_id=told.leader_id,
        epoch=told.leader_epoch,
        endpoints=leader_endpoints(message.node_endpoints, told.leader_id, listener),
        **more(told),
    )
