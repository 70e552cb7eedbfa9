"""Features as ApiVersions tells them (KIP-584): only what is done is advertised."""

from headrace.cores.controller import Outcome
from headrace.cores.metadata import Metadata
from headrace.model.metadata_records import FeatureLevelRecord

METADATA_VERSION = "metadata.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 25),
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    KRAFT_VERSION: (0, 1),
    ELR_VERSION: (0, 1),
}
"""Levels this broker can run at, by feature."""

FINALIZED: dict[str, int] = {
    METADATA_VERSION: 25,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""Levels a new cluster starts at: the consumer protocol (KIP-848), share groups (KIP-932), streams groups
(KIP-1071), an epoch for each transaction (KIP-890)."""


def first_levels(metadata: Metadata) -> Outcome[None]:
    """Finalize the levels of a new cluster; one that runs at some levels already keeps them."""
    if METADATA_VERSION in metadata.features:
        return Outcome([], None)
    return Outcome([FeatureLevelRecord(name=name, feature_level=level) for name, level in FINALIZED.items()], None)
