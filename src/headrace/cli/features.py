"""kafka-features: what a cluster has agreed on, and moving it to other levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, settle_address
from headrace.cli.administration import ask_controller
from headrace.cli.feature_levels import (
    METADATA_VERSION,
    default_levels,
    feature_and_level,
    metadata_level,
    release,
    show_dependencies,
    show_mapping,
    shown_level,
)
from headrace.cli.java_words import sentence
from headrace.cli.session import Failure
from headrace.cli.subcommands import Command, run_commands
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

API_VERSIONS, UPDATE_FEATURES = 18, 57
_REFUSED = "Command line error: {}. Type --help for help."
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

TOOL = Tool(
    name="kafka-features",
    summary="This tool manages feature flags in Kafka: kafka-features --bootstrap-server host:port "
    "{describe,upgrade,downgrade,disable,version-mapping,feature-dependencies} ...",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        Option(name="node-id", argument="id", help="describe: the node to ask; else any."),
        Option(name="metadata", argument="version", help="DEPRECATED: the level of metadata.version, by its release."),
        Option(name="release-version", argument="version", help="The release whose levels all features shall have."),
        Option(
            name="feature", argument="feature=level", is_repeatable=True, help="A feature and its level, or its name."
        ),
        Option(name="unsafe", help="downgrade, disable: do it even if metadata may be lost."),
        Option(name="dry-run", help="Say what would be done, but do not do it."),
    ),
    examples=(
        ("What the cluster has agreed on", "--bootstrap-server localhost:9092 describe"),
        ("Which levels belong to a release", "--bootstrap-server localhost:9092 version-mapping --release-version 4.2"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_commands(TOOL, COMMANDS, arguments, program, help_is_success=True, refused=_REFUSED)


def _settle(session: Session) -> None:
    settle_address(session, _REFUSED.format("You must specify either --bootstrap-controller or --bootstrap-server."))


async def _describe(session: Session) -> int:
    from headrace.wire.messages.api_versions import ApiVersionsRequest

    _settle(session)
    node_id = session.values.number("node-id")
    request = ApiVersionsRequest(client_software_name="headrace", client_software_version="1")
    answer = await session.cluster.ask(API_VERSIONS, request, node_id=node_id)
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    documents: list[dict[str, Any]] = []
    for one in sorted(answer.supported_features, key=lambda feature: str(feature.name)):
        low, high, level = (
            shown_level(one.name, number) for number in (one.min_version, one.max_version, levels.get(one.name, 0))
        )
        shown_epoch = str(epoch) if epoch >= 0 else "-"
        session.report.line(
            f"Feature: {one.name:<40}  SupportedMinVersion: {low:<15}  SupportedMaxVersion: {high:<15}  "
            f"FinalizedVersionLevel: {level:<15}  Epoch: {shown_epoch}"
        )
        documents.append(
            {
                "feature": one.name,
                "supportedMinVersion": one.min_version,
                "supportedMaxVersion": one.max_version,
                "finalizedVersionLevel": levels.get(one.name, 0),
                "epoch": epoch if epoch >= 0 else None,
            }
        )
    session.report.data(documents)
    return 0


# --- moving


async def _upgrade(session: Session) -> int:
    return await _move(session, "upgrade", UPGRADE)


async def _downgrade(session: Session) -> int:
    return await _move(session, "downgrade", _downgrade_kind(session))


def _downgrade_kind(session: Session) -> int:
    return UNSAFE_DOWNGRADE if session.values.has("unsafe") else SAFE_DOWNGRADE


async def _move(session: Session, verb: str, kind: int) -> int:
    values = session.values
    named = values.get("release-version")
    if named is not None and (values.has("metadata") or values.has("feature")):
        raise Failure("Can not specify `release-version` with other feature flags.")
    levels: dict[str, int] = {}
    if named is not None:
        name = release(named)
        levels[METADATA_VERSION] = metadata_level(name)
        # A feature is not upgraded to 0, which means that it is off.
        levels |= {feature: level for feature, level in default_levels(name).items() if kind != UPGRADE or level}
    if values.has("metadata"):
        session.report.note(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = metadata_level(release(values.require("metadata")))
    for text in values.all("feature"):
        feature, level = feature_and_level(text)
        if feature in levels:
            raise Failure(f"Feature {feature} was specified more than once.")
        levels[feature] = level
    return await _update(session, verb, kind, levels)


async def _disable(session: Session) -> int:
    levels: dict[str, int] = {}
    for feature in session.values.all("feature"):
        if feature in levels:
            raise Failure(f"Feature {feature} was specified more than once.")
        levels[feature] = 0
    return await _update(session, "disable", _downgrade_kind(session), levels)


async def _update(session: Session, verb: str, kind: int, levels: dict[str, int]) -> int:
    from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    if not levels:
        raise Failure(f"You must specify at least one feature to {verb}")
    _settle(session)
    dry_run = session.values.has("dry-run")
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(
                feature=feature, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UPGRADE
            )
            for feature, level in levels.items()
        ),
        validate_only=dry_run,
    )
    answer = await ask_controller(session.cluster, UPDATE_FEATURES, request)
    errors = _errors(answer, levels)
    for feature, level in sorted(levels.items()):
        session.report.line(_outcome(verb, feature, level, errors.get(feature), dry_run=dry_run))
    session.report.data(
        [
            {"feature": feature, "level": level, "dryRun": dry_run, "error": errors.get(feature)}
            for feature, level in sorted(levels.items())
        ]
    )
    if errors:
        raise Failure(f"{len(errors)} out of {len(levels)} operation(s) failed.")
    return 0


def _errors(answer: Any, levels: dict[str, int]) -> dict[str, str]:
    if answer.error_code:
        return dict.fromkeys(levels, sentence(answer.error_code, answer.error_message))
    return {one.feature: sentence(one.error_code, one.error_message) for one in answer.results if one.error_code}


def _outcome(verb: str, feature: str, level: int, error: str | None, *, dry_run: bool) -> str:
    if error is not None:
        what = f"disable {feature}" if verb == "disable" else f"{verb} {feature} to {level}"
        return f"{'Can' if dry_run else 'Could'} not {what}. {error}"
    done = "disabled." if verb == "disable" else f"{verb}d to {level}."
    return f"{feature} {'can be' if dry_run else 'was'} {done}"


# --- looking up


async def _version_mapping(session: Session) -> int:
    show_mapping(session.report, session.values.get("release-version"))
    return 0


async def _feature_dependencies(session: Session) -> int:
    show_dependencies(session.report, session.values.all("feature"))
    return 0


_MOVING = ("metadata", "release-version", "feature", "dry-run")
COMMANDS = {
    "describe": Command(work=_describe, options=("node-id",)),
    "upgrade": Command(work=_upgrade, options=_MOVING),
    "downgrade": Command(work=_downgrade, options=(*_MOVING, "unsafe")),
    "disable": Command(work=_disable, options=("feature", "unsafe", "dry-run")),
    "version-mapping": Command(work=_version_mapping, options=("release-version",)),
    "feature-dependencies": Command(work=_feature_dependencies, options=("feature",), required=("feature",)),
}
