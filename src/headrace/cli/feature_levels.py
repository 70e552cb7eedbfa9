"""Which level of each feature belongs to which release of Kafka; what `kafka-features` knows without asking anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.report import Report

_SHORT_MAX = 32767
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


def feature_and_level(text: str) -> tuple[str, int]:
    """What `feature=level` says; Failure in Kafka's words where it does not."""
    name, sign, level = text.partition("=")
    if not sign:
        raise Failure(f"Can't parse feature=level string {text}: equals sign not found.")
    level = level.strip()
    try:
        number = int(level)
    except ValueError:
        number = _SHORT_MAX + 1
    if not -_SHORT_MAX <= number <= _SHORT_MAX:
        raise Failure(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name.strip(), number


# --- telling


def show_mapping(report: Report, asked: str | None) -> None:
    """The levels that belong to a release; to the latest, if none is named."""
    asked = asked or LATEST
    name = release(asked)
    level, levels = metadata_level(name), default_levels(name)
    report.line(f"metadata.version={level} ({asked})")
    for feature, number in levels.items():
        report.line(f"{feature}={number}")
    report.data({"release": name, "features": {METADATA_VERSION: level} | levels})


def show_dependencies(report: Report, wanted: Sequence[str]) -> None:
    """What each `feature=level` needs of other features."""
    documents = []
    for text in wanted:
        feature, level = feature_and_level(text)
        needs = DEPENDENCIES.get((feature, level), {})
        for line in _dependency_lines(feature, level, needs):
            report.line(line)
        documents.append({"feature": feature, "level": level, "requires": needs})
    report.data(documents)


def _dependency_lines(feature: str, level: int, needs: dict[str, int]) -> list[str]:
    if feature == METADATA_VERSION:
        name = release_of(level)
        if name is None:
            raise Failure(f"Unknown metadata.version {level}")
        return [f"{feature}={level} ({name}) has no dependencies."]
    if feature not in INTRODUCED:
        raise Failure(f"Unknown feature: {feature}")
    if level and level not in INTRODUCED[feature]:
        raise Failure(f"No feature:{feature} with feature level {level}")
    if not needs:
        return [f"{feature}={level} has no dependencies."]
    lines = [f"{feature}={level} requires:"]
    for needed, at in needs.items():
        shown = f" ({release_of(at)})" if needed == METADATA_VERSION else ""
        lines.append(f"    {needed}={at}{shown}")
    return lines
