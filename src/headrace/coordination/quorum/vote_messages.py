"""Vote (52) as the core and the wire have it."""

from __future__ import annotations

from headrace.coordination.quorum.voter_answers import answer_from_wire, answer_to_wire
from headrace.coordination.quorum.wire_terms import (
    PARTITION,
    asked_partition,
    directory_on_wire,
    replica_key,
    voter_key,
)
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft import messages as core
from headrace.wire.messages import vote as wire


def request_to_wire(request: core.VoteRequest) -> wire.VoteRequest:
    """What a candidate sends."""
    partition = wire.RequestPartitionData(
        partition_index=PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=directory_on_wire(request.candidate),
        voter_directory_id=directory_on_wire(request.voter),
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    return wire.VoteRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.id if request.voter is not None else -1,
        topics=(wire.RequestTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
    )


def request_from_wire(message: wire.VoteRequest) -> core.VoteRequest | None:
    """What a candidate asks; None if it is about something else than the metadata."""
    asked = asked_partition(message.topics)
    if asked is None:
        return None
    return core.VoteRequest(
        cluster_id=message.cluster_id,
        voter=voter_key(message.voter_id, asked.voter_directory_id),
        epoch=asked.replica_epoch,
        candidate=replica_key(asked.replica_id, asked.replica_directory_id),
        last_offset=asked.last_offset,
        last_epoch=asked.last_offset_epoch,
        pre_vote=asked.pre_vote,
    )


def response_to_wire(response: core.VoteResponse, listener: str) -> wire.VoteResponse:
    """What a voter answers."""
    return answer_to_wire(wire, wire.VoteResponse, response, listener, vote_granted=response.granted)


def response_from_wire(message: wire.VoteResponse, listener: str) -> core.VoteResponse | None:
    """What a voter answered; None if it makes no sense."""
    return answer_from_wire(core.VoteResponse, message, listener, lambda told: {"granted": told.vote_granted})
