"""Features as ApiVersions tells them (KIP-584): only what is done is advertised."""

from collections.abc import Mapping, Sequence

from headrace.cores.controller import Outcome, Policy
from headrace.cores.controller.features import safe_for_elr
from headrace.cores.metadata import Metadata
from headrace.model.errors import HeadraceError
from headrace.model.metadata_records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    KRAFT_VERSION: (0, 1),
    ELR_VERSION: (0, 1),
}
"""Levels this broker can run at, by feature.

What came to metadata.version after 25 (4.0-IV3): 26 eligible leader replicas in new clusters, 27 Fetch v18, 28 and 29
share and streams groups in new clusters and ListOffsets v11, 30 (4.3-IV0) records that may name cordoned log dirs.
"""

FINALIZED: dict[str, int] = {
    METADATA_VERSION: 25,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""Levels a new cluster starts at, if nobody says otherwise: the metadata version whose records we write; the consumer
protocol (KIP-848), share groups (KIP-932), streams groups (KIP-1071), an epoch for each transaction (KIP-890)."""


class LevelNotServed(HeadraceError):
    """A cluster was formatted for levels of features that are not known here."""


def check_levels(first_records: Sequence[MetadataRecord]) -> None:
    """Refuse what a new cluster shall begin with, if it cannot be served."""
    for record in first_records:
        if isinstance(record, FeatureLevelRecord):
            low, high = SUPPORTED.get(record.name, (0, 0))
            if not low <= record.feature_level <= high:
                raise LevelNotServed(
                    f"This directory was formatted for {record.name} {record.feature_level}, and {low} to {high} are "
                    "served. Format it for another release: kafka-storage format --release-version"
                )


def level_records(levels: Mapping[str, int]) -> list[MetadataRecord]:
    """Records that set these levels, the metadata version first; 0 is what a feature has that is not named."""
    ordered = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    return [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in ordered if levels[name]]


def first_levels(metadata: Metadata, first_records: Sequence[MetadataRecord], policy: Policy) -> Outcome[None]:
    """Begin a new cluster as it was formatted, or at our levels; one that runs at some levels already keeps them."""
    if METADATA_VERSION in metadata.features:
        return Outcome([], None)
    records = list(first_records) or level_records(FINALIZED)
    if FeatureLevelRecord(name=ELR_VERSION, feature_level=1) in records:
        records += safe_for_elr(metadata, policy)
    return Outcome(records, None)
