"""AddRaftVoter (80), RemoveRaftVoter (81) and UpdateRaftVoter (82) as the core and the wire have them."""

from __future__ import annotations

from headrace.coordination.quorum.wire_terms import (
    directory_on_wire,
    endpoints_from_wire,
    endpoints_on_wire,
    error_code,
    listening_at,
    replica_key,
)
from headrace.cores.raft import messages as core
from headrace.cores.raft.voters import Endpoint
from headrace.wire.messages import add_raft_voter, api_versions, remove_raft_voter, update_raft_voter

KRAFT_VERSION = "kraft.version"


def add_request_from_wire(message: add_raft_voter.AddRaftVoterRequest) -> core.AddVoterRequest:
    """Who is to vote."""
    return core.AddVoterRequest(
        cluster_id=message.cluster_id,
        voter=replica_key(message.voter_id, message.voter_directory_id),
        endpoints=endpoints_from_wire(message.listeners),
        timeout_ms=message.timeout_ms,
        ack_when_committed=message.ack_when_committed,
    )


def remove_request_from_wire(message: remove_raft_voter.RemoveRaftVoterRequest) -> core.RemoveVoterRequest:
    """Who is to vote no longer."""
    return core.RemoveVoterRequest(
        cluster_id=message.cluster_id, voter=replica_key(message.voter_id, message.voter_directory_id)
    )


def update_request_to_wire(request: core.UpdateVoterRequest) -> update_raft_voter.UpdateRaftVoterRequest:
    """Where a voter listens now."""
    low, high = request.kraft_versions
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=request.cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=request.voter.id,
        voter_directory_id=directory_on_wire(request.voter),
        listeners=endpoints_on_wire(request.endpoints, update_raft_voter.Listener),
        k_raft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=low, max_supported_version=high
        ),
    )


def update_request_from_wire(message: update_raft_voter.UpdateRaftVoterRequest) -> core.UpdateVoterRequest:
    """Where a voter listens now."""
    feature = message.k_raft_version_feature
    return core.UpdateVoterRequest(
        cluster_id=message.cluster_id,
        voter=replica_key(message.voter_id, message.voter_directory_id),
        epoch=message.current_leader_epoch,
        endpoints=endpoints_from_wire(message.listeners),
        kraft_versions=(feature.min_supported_version, feature.max_supported_version),
    )


def update_response_to_wire(
    response: core.UpdateVoterResponse, listener: str
) -> update_raft_voter.UpdateRaftVoterResponse:
    """What the leader, or who is not, answers."""
    found = listening_at(response.endpoints, listener)
    return update_raft_voter.UpdateRaftVoterResponse(
        error_code=int(response.error),
        current_leader=update_raft_voter.CurrentLeader(
            leader_id=response.leader_id,
            leader_epoch=response.epoch,
            host=found.host if found is not None else "",
            port=found.port if found is not None else 0,
        ),
    )


def update_response_from_wire(
    message: update_raft_voter.UpdateRaftVoterResponse, listener: str
) -> core.UpdateVoterResponse | None:
    """What the leader, or who is not, answered."""
    leader = message.current_leader
    known = leader.leader_id >= 0 and leader.host
    return core.UpdateVoterResponse(
        error=error_code(message.error_code),
        leader_id=leader.leader_id,
        epoch=max(leader.leader_epoch, 0),
        endpoints=(Endpoint(listener, leader.host, leader.port),) if known else (),
    )


def versions_request_to_wire(request: core.KRaftVersionsRequest) -> api_versions.ApiVersionsRequest:
    """ApiVersions: who asks is of no interest."""
    return api_versions.ApiVersionsRequest(client_software_name="headrace", client_software_version="0")


def versions_response_from_wire(
    message: api_versions.ApiVersionsResponse, listener: str
) -> core.KRaftVersionsResponse | None:
    """Which `kraft.version` a node speaks; one that names none speaks only the first."""
    found = [
        (feature.min_version, feature.max_version)
        for feature in message.supported_features
        if feature.name == KRAFT_VERSION
    ]
    return core.KRaftVersionsResponse(
        error=error_code(message.error_code), kraft_versions=found[0] if found else (0, 0)
    )
