"""Features as ApiVersions tells them (KIP-584): only what is done is advertised."""

METADATA_VERSION = "metadata.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 25),
}
"""Levels this broker can run at, by feature."""

FINALIZED: dict[str, int] = {
    METADATA_VERSION: 25,
}
"""Levels a new cluster starts at."""
