"""BeginQuorumEpoch (53) and EndQuorumEpoch (54) as the core and the wire have them."""

from __future__ import annotations

from headrace.coordination.quorum.voter_answers import answer_from_wire, answer_to_wire
from headrace.coordination.quorum.wire_terms import (
    PARTITION,
    asked_partition,
    directory_on_wire,
    endpoints_from_wire,
    endpoints_on_wire,
    replica_key,
    voter_key,
)
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft import messages as core
from headrace.cores.raft.voters import ReplicaKey
from headrace.wire.messages import begin_quorum_epoch as begin
from headrace.wire.messages import end_quorum_epoch as end

# BeginQuorumEpoch


def begin_request_to_wire(request: core.BeginQuorumEpochRequest) -> begin.BeginQuorumEpochRequest:
    """What a new leader sends."""
    partition = begin.RequestPartitionData(
        partition_index=PARTITION,
        voter_directory_id=directory_on_wire(request.voter),
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id if request.voter is not None else -1,
        topics=(begin.RequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=endpoints_on_wire(request.endpoints, begin.LeaderEndpoint),
    )


def begin_request_from_wire(message: begin.BeginQuorumEpochRequest) -> core.BeginQuorumEpochRequest | None:
    """What a new leader says; None if it is about something else than the metadata."""
    asked = asked_partition(message.topics)
    if asked is None:
        return None
    return core.BeginQuorumEpochRequest(
        cluster_id=message.cluster_id,
        voter=voter_key(message.voter_id, asked.voter_directory_id),
        leader_id=asked.leader_id,
        epoch=asked.leader_epoch,
        endpoints=endpoints_from_wire(message.leader_endpoints),
    )


def begin_response_to_wire(response: core.BeginQuorumEpochResponse, listener: str) -> begin.BeginQuorumEpochResponse:
    """What a voter answers."""
    return answer_to_wire(begin, begin.BeginQuorumEpochResponse, response, listener)


def begin_response_from_wire(
    message: begin.BeginQuorumEpochResponse, listener: str
) -> core.BeginQuorumEpochResponse | None:
    """What a voter answered; None if it makes no sense."""
    return answer_from_wire(core.BeginQuorumEpochResponse, message, listener)


# EndQuorumEpoch


def end_request_to_wire(request: core.EndQuorumEpochRequest) -> end.EndQuorumEpochRequest:
    """What a leader sends that resigns."""
    partition = end.RequestPartitionData(
        partition_index=PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_candidates=tuple(
            end.ReplicaInfo(candidate_id=key.id, candidate_directory_id=directory_on_wire(key))
            for key in request.preferred
        ),
        preferred_successors=tuple(key.id for key in request.preferred),
    )
    return end.EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        topics=(end.RequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=endpoints_on_wire(request.endpoints, end.LeaderEndpoint),
    )


def end_request_from_wire(message: end.EndQuorumEpochRequest) -> core.EndQuorumEpochRequest | None:
    """What a leader says that resigns; None if it is about something else than the metadata."""
    asked = asked_partition(message.topics)
    if asked is None:
        return None
    candidates = tuple(replica_key(one.candidate_id, one.candidate_directory_id) for one in asked.preferred_candidates)
    return core.EndQuorumEpochRequest(
        cluster_id=message.cluster_id,
        leader_id=asked.leader_id,
        epoch=asked.leader_epoch,
        preferred=candidates or tuple(ReplicaKey(node_id) for node_id in asked.preferred_successors),
        endpoints=endpoints_from_wire(message.leader_endpoints),
    )


def end_response_to_wire(response: core.EndQuorumEpochResponse, listener: str) -> end.EndQuorumEpochResponse:
    """What a voter answers."""
    return answer_to_wire(end, end.EndQuorumEpochResponse, response, listener)


def end_response_from_wire(message: end.EndQuorumEpochResponse, listener: str) -> core.EndQuorumEpochResponse | None:
    """What a voter answered; None if it makes no sense."""
    return answer_from_wire(core.EndQuorumEpochResponse, message, listener)
