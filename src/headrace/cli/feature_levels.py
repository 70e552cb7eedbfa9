"""Which level of each feature belongs to which release of Kafka; what `kafka-features` knows without asking anybody."""

from __future__ import annotations

from headrace.cli.session import Failure

METADATA_VERSION = "metadata.version"
FIRST_LEVEL = 7

_STEPS = {
    "3.3": (3,),
    "3.4": (0,),
    "3.5": (0, 1, 2),
    "3.6": (0, 1, 2),
    "3.7": (0, 1, 2, 3, 4),
    "3.8": (0,),
    "3.9": (0,),
    "4.0": (0, 1, 2, 3),
    "4.1": (0, 1),
    "4.2": (0, 1),
    "4.3": (0,),
    "4.4": (0,),
}
RELEASES = [f"{release}-IV{step}" for release, steps in _STEPS.items() for step in steps]
"""The metadata versions in order; the first one has the level FIRST_LEVEL."""
LATEST = "4.3-IV0"

INTRODUCED = {
    "kraft.version": {1: "3.9-IV0"},
    "transaction.version": {1: "4.0-IV2", 2: "4.0-IV2"},
    "group.version": {1: "4.0-IV0"},
    "eligible.leader.replicas.version": {1: "4.1-IV0"},
    "share.version": {1: "4.2-IV0"},
    "streams.version": {1: "4.2-IV1"},
}
"""The release in which a feature came to a level, in Kafka's order of features."""

DEPENDENCIES = {("eligible.leader.replicas.version", 1): {METADATA_VERSION: 23}}
"""What a level of a feature needs of others."""


def release(text: str) -> str:
    """The full name of a release; `4.0` means the last of it that is for production."""
    if text in RELEASES:
        return text
    matching = [name for name in RELEASES[: RELEASES.index(LATEST) + 1] if name.split("-", 1)[0] == text]
    if not matching:
        raise Failure(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(RELEASES)}")
    return matching[-1]


def metadata_level(name: str) -> int:
    """The level of metadata.version that a release is."""
    return FIRST_LEVEL + RELEASES.index(name)


def release_of(level: int) -> str | None:
    """The release of a level of metadata.version, or None."""
    place = level - FIRST_LEVEL
    return RELEASES[place] if 0 <= place < len(RELEASES) else None


def default_levels(name: str) -> dict[str, int]:
    """The level of every feature in a release."""
    at = RELEASES.index(name)
    return {
        feature: max((level for level, since in levels.items() if RELEASES.index(since) <= at), default=0)
        for feature, levels in INTRODUCED.items()
    }


def shown_level(feature: str, level: int) -> str:
    """A level as people know it: that of metadata.version is named after the release."""
    if feature != METADATA_VERSION:
        return str(level)
    return release_of(level) or f"UNKNOWN {level}"
