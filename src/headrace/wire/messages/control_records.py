"""Control records of the metadata log and its snapshots, in Kafka's names; written by hand beside their schema text."""

from uuid import UUID

from msgspec import Struct

from headrace.model.ids import ZERO_ID


class LeaderChangeVoter(Struct, frozen=True, kw_only=True, gc=False):
    """Part of LeaderChangeMessage."""

    voter_id: int = 0
    voter_directory_id: UUID = ZERO_ID


class LeaderChangeMessage(Struct, frozen=True, kw_only=True, gc=False):
    """The first record of an epoch: who leads it, and who voted so."""

    version: int = 0
    leader_id: int = 0
    voters: tuple[LeaderChangeVoter, ...] = ()
    granting_voters: tuple[LeaderChangeVoter, ...] = ()


class SnapshotHeaderRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The first record of a snapshot."""

    version: int = 0
    last_contained_log_timestamp: int = 0


class SnapshotFooterRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The last record of a snapshot; one without is not whole."""

    version: int = 0


class KRaftVersionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Whether the voters stand in the log (1) or in the settings (0)."""

    version: int = 0
    k_raft_version: int = 0


class KRaftVersionFeature(Struct, frozen=True, kw_only=True, gc=False):
    """Part of VotersRecord."""

    min_supported_version: int = 0
    max_supported_version: int = 0


class VoterEndpoint(Struct, frozen=True, kw_only=True, gc=False):
    """Part of VotersRecord."""

    name: str = ""
    host: str = ""
    port: int = 0


class VotersVoter(Struct, frozen=True, kw_only=True, gc=False):
    """Part of VotersRecord."""

    voter_id: int = 0
    voter_directory_id: UUID = ZERO_ID
    endpoints: tuple[VoterEndpoint, ...] = ()
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class VotersRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Everybody who votes from here on (KIP-853)."""

    version: int = 0
    voters: tuple[VotersVoter, ...] = ()
