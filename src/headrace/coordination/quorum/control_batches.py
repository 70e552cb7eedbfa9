"""The core's control records as batches of the metadata log, and the voters that are read from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.raft import outputs as wanted
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.ids import ZERO_ID
from headrace.wire.control_records import ControlRecord, build_control_batch, read_control_batch
from headrace.wire.messages.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)

if TYPE_CHECKING:
    from headrace.records.compression import Bytes


def control_batch(append: wanted.AppendControl, *, timestamp_ms: int) -> bytearray:
    """The batch that the core wants appended."""
    return build_control_batch(
        [control_record(record) for record in append.records],
        timestamp_ms=timestamp_ms,
        base_offset=append.base_offset,
        leader_epoch=append.epoch,
    )


def control_record(record: wanted.LeaderChange | wanted.KRaftVersion | wanted.Voters) -> ControlRecord:
    """One of the core's records in Kafka's form."""
    match record:
        case wanted.LeaderChange():
            return LeaderChangeMessage(
                leader_id=record.leader_id,
                voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in record.voters),
                granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in record.granting_voters),
            )
        case wanted.KRaftVersion():
            return KRaftVersionRecord(k_raft_version=record.version)
        case wanted.Voters():
            return voters_record(record.voters)


def voters_record(voters: VoterSet) -> VotersRecord:
    """A voter set as a record."""
    return VotersRecord(
        voters=tuple(
            VotersVoter(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id or ZERO_ID,
                endpoints=tuple(VoterEndpoint(name=one.name, host=one.host, port=one.port) for one in voter.endpoints),
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                ),
            )
            for voter in voters.by_id.values()
        )
    )


def voter_set(record: VotersRecord) -> VoterSet:
    """The voter set of a record."""
    return VoterSet(
        Voter(
            ReplicaKey(voter.voter_id, voter.voter_directory_id if voter.voter_directory_id != ZERO_ID else None),
            tuple(Endpoint(one.name, one.host, one.port) for one in voter.endpoints),
            (voter.k_raft_version_feature.min_supported_version, voter.k_raft_version_feature.max_supported_version),
        )
        for voter in record.voters
    )


def voters_in(batch: Bytes) -> VoterSet | None:
    """The last voter set in a control batch, if it has one; CorruptBatch if it cannot be read."""
    found = None
    for record in read_control_batch(batch):
        if isinstance(record, VotersRecord):
            found = voter_set(record)
    return found
