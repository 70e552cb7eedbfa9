"""Features as ApiVersions tells them (KIP-584): only what is done is advertised."""

METADATA_VERSION = "metadata.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 25),
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
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
