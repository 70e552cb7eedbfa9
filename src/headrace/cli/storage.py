"""kafka-storage: look at log directories, format them, and make ids.

Texts are those of Kafka 4.3. Deviations: no `Bootstrap metadata: ...` line; a refusal that Kafka gives as a stack trace
is its sentence alone; releases before 4.0-IV3 are refused, and so are credentials, because nothing would come of them.
Without --release-version it is 4.0-IV3; share and streams groups are on from there, where Kafka waits for 4.2.
"""

import argparse
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from headrace.broker.features import FINALIZED, KRAFT_VERSION, METADATA_VERSION, SUPPORTED, level_records
from headrace.cli.arguments import Parser, add_output
from headrace.cli.feature_levels import (
    LATEST,
    default_levels,
    feature_and_level,
    metadata_level,
    release,
    release_of,
    show_dependencies,
    show_mapping,
)
from headrace.cli.initial_voters import directory_of, only_voter, parse_voters, write_voters
from headrace.cli.report import Report
from headrace.coordination.quorum.bootstrap_file import write_bootstrap
from headrace.model.errors import HeadraceError
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.settings.broker import BrokerConfig
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta, write_meta

RELEASE = "4.0-IV3"
"""Kafka's name of the metadata version a new cluster starts at."""

_ALREADY_FORMATTED = (
    "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format the others."
)
_NO_VOTERS = (
    "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
    "--standalone, --initial-controllers, or --no-initial-controllers."
)
_OTHER_NODE = (
    "Stored node id {} doesn't match previous node id {} in {}. If you moved your data, make sure your configured "
    "node id matches. If you intend to create a new node, you should remove all data in your data directories."
)
_VOTERS_AND_STANDALONE = (
    "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. "
    "If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
    "controller.quorum.bootstrap.servers instead."
)


_NO_FEATURE = "Invalid feature format: {}. Expected format: 'feature=version' (e.g. 'group.version=1')"
_NO_SCRAM = (
    "Credentials for SCRAM are not kept, because Headrace does not serve logins by SCRAM yet. "
    "Format without --add-scram."
)
_EXAMPLES = """\
Examples:
  An id for a new cluster            kafka-storage random-uuid
  Prepare this node's directories    kafka-storage format -t CLUSTER_ID -c config/server.properties
  What the directories hold          kafka-storage info -c config/server.properties --output json
  Which levels belong to a release   kafka-storage version-mapping -r 4.0
"""
_STARTS_AT = f"A new cluster of Headrace starts at {METADATA_VERSION} {RELEASE} unless it is formatted for another."


class Refused(HeadraceError):
    """What was asked cannot be done; the message says why."""


def main(arguments: Sequence[str], program: str) -> int:
    """Do what the sub-command says."""
    options = _parser().parse_args(list(arguments))
    report = Report(options.output)
    try:
        return _do(options, report)
    except HeadraceError as error:
        print(error, file=sys.stderr)
        return 1


def _do(options: argparse.Namespace, report: Report) -> int:
    match options.command:
        case "random-uuid":
            made = encode_uuid(_random_uuid())
            report.line(made)
            report.data({"uuid": made})
        case "version-mapping":
            show_mapping(report, options.release_version)
            if release(options.release_version or LATEST) != RELEASE:
                print(_STARTS_AT, file=sys.stderr)
        case "feature-dependencies":
            for text in options.feature:
                if "=" not in text:
                    raise Refused(_NO_FEATURE.format(text))
            show_dependencies(report, options.feature)
        case "info":
            return info(BrokerConfig.load(options.config), report)
        case _:
            format_directories(BrokerConfig.load(options.config), options, report)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="kafka-storage",
        description="The Kafka storage tool.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    info_parser = commands.add_parser("info", help="Get information about the Kafka log directories on this node.")
    format_parser = commands.add_parser("format", help="Format the Kafka log directories on this node.")
    mapping = commands.add_parser("version-mapping", help="Look up the levels of all features in a release.")
    mapping.add_argument("--release-version", "-r", help="The release; the latest if none is named.")
    dependencies = commands.add_parser("feature-dependencies", help="Look up what levels of features need of others.")
    dependencies.add_argument("--feature", "-f", action="append", required=True, help="As feature=level; repeatable.")
    random_uuid = commands.add_parser("random-uuid", help="Print a random UUID.")
    add_output(info_parser, format_parser, mapping, dependencies, random_uuid)
    for command in (info_parser, format_parser):
        command.add_argument("--config", "-c", required=True, help="The Kafka configuration file to use.")
    add = format_parser.add_argument
    add("--cluster-id", "-t", required=True, help="The cluster ID to use.")
    add("--ignore-formatted", "-g", action="store_true", help="Skip directories that are formatted already.")
    add("--add-scram", "-S", action="append", default=[], help="Refused: Headrace serves no logins by SCRAM yet.")
    add("--release-version", "-r", help=f"The release of the initial features: {RELEASE} (the default) to {LATEST}.")
    add("--feature", "-f", action="append", default=[], help="The level of a feature, as feature=level.")
    quorum = format_parser.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="This controller alone is the quorum.")
    quorum.add_argument("--initial-controllers", "-I", help="The first voters, as id@host:port:directory-id,... .")
    quorum.add_argument("--no-initial-controllers", "-N", action="store_true", help="The quorum is named later.")
    return parser


def _random_uuid() -> uuid.UUID:
    while not usable_uuid(candidate := uuid.uuid4()):
        pass
    return candidate


def info(config: BrokerConfig, report: Report) -> int:
    """Print what the directories hold and what is wrong with them."""
    found, problems = [], []
    metas: list[MetaProperties] = []
    for path in _directories(config):
        if not path.is_dir():
            problems.append(f"{path} is not a directory" if path.exists() else f"{path} does not exist")
            continue
        found.append(path)
        try:
            meta = read_meta(RealFiles(), str(path))
        except CorruptLog as error:
            problems.append(f"Error loading {path / META_PROPERTIES}: {error}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
            continue
        metas.append(meta)
        if meta.cluster_id != metas[0].cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif meta.node_id != metas[0].node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if found:
        _print_block(report, "Found log directory:" if len(found) == 1 else "Found log directories:", found)
    if metas:
        report.line(f"Found metadata: {_shown(metas[0])}\n")
    if problems:
        _print_block(report, "Found problem:" if len(problems) == 1 else "Found problems:", problems)
    known = {"clusterId": metas[0].cluster_id, "nodeId": metas[0].node_id} if metas else None
    report.data({"directories": list(map(str, found)), "metadata": known, "problems": problems})
    return 1 if problems else 0


def _shown(meta: MetaProperties) -> str:
    """As Java prints a sorted map."""
    directory = f", directory.id={encode_uuid(meta.directory_id)}" if meta.directory_id else ""
    return f"{{cluster.id={meta.cluster_id}{directory}, node.id={meta.node_id}, version=1}}"


def _print_block(report: Report, title: str, lines: Sequence[object]) -> None:
    for line in (title, *(f"  {line}" for line in lines), ""):
        report.line(line)


def format_directories(config: BrokerConfig, options: argparse.Namespace, report: Report) -> None:
    """Write meta.properties into every directory that has none."""
    if not options.cluster_id.isprintable() or not options.cluster_id.strip():
        raise Refused(f"Cluster ID {options.cluster_id!r} is not a name. Make one with: kafka-storage random-uuid")
    if options.add_scram:
        raise Refused(_NO_SCRAM)
    _check_quorum(config, options)
    levels = _levels(options)
    formatted: dict[Path, MetaProperties] = {}
    empty = []
    for path in _directories(config):
        if path.exists() and not path.is_dir():
            report.note(f"I/O error trying to read log directory {path}. Ignoring...")
        elif meta := read_meta(RealFiles(), str(path)):
            _check_same_node(path, meta, config, options.cluster_id)
            formatted[path] = meta
        else:
            empty.append(path)
    if formatted and not options.ignore_formatted:
        raise Refused(_ALREADY_FORMATTED.format(next(iter(formatted))))
    if not formatted and not empty:
        raise Refused("No available log directories to format.")
    if not empty:
        report.line("All of the log directories are already formatted.")
    for path in empty:
        named = release_of(levels[METADATA_VERSION])
        report.line(f"Formatting {_kind(path, config, options)} {path} with {METADATA_VERSION} {named}.")
        _format(path, config, options, levels)
    report.data(
        {
            "clusterId": options.cluster_id,
            "formatted": list(map(str, empty)),
            "formattedBefore": list(map(str, formatted)),
            "metadataVersion": release_of(levels[METADATA_VERSION]),
        }
    )


def _format(path: Path, config: BrokerConfig, options: argparse.Namespace, levels: dict[str, int]) -> None:
    """Say whose a directory is, and in that of the metadata with which levels the cluster begins and who votes."""
    directory_id, voters = _random_uuid(), None
    if path == Path(config.metadata_log_dir) and options.initial_controllers:
        voters = parse_voters(options.initial_controllers, config.controller_listener_names[0])
        directory_id = directory_of(voters, config.node_id)
    elif path == Path(config.metadata_log_dir) and options.standalone:
        voters = only_voter(config, directory_id)
    path.mkdir(parents=True, exist_ok=True)
    now_ms = time.time_ns() // 1_000_000
    if path == Path(config.metadata_log_dir):
        write_bootstrap(RealFiles(), str(path), level_records(levels), now_ms=now_ms)
    if voters is not None:
        write_voters(RealFiles(), path, voters, now_ms=now_ms)
    meta = MetaProperties(cluster_id=options.cluster_id, node_id=config.node_id, directory_id=directory_id)
    write_meta(RealFiles(), str(path), meta)


def _directories(config: BrokerConfig) -> list[Path]:
    return [Path(path) for path in sorted({*config.log_dirs, config.metadata_log_dir})]


def _kind(path: Path, config: BrokerConfig, options: argparse.Namespace) -> str:
    if path != Path(config.metadata_log_dir):
        return "data directory"
    is_voter = options.standalone or options.initial_controllers
    return "dynamic metadata voter directory" if is_voter else "metadata directory"


def _check_quorum(config: BrokerConfig, options: argparse.Namespace) -> None:
    is_voter = options.standalone or options.initial_controllers
    if config.quorum_voters and is_voter:
        raise Refused(_VOTERS_AND_STANDALONE)
    if options.standalone and "controller" not in config.roles:
        raise Refused("You can only use --standalone on a controller.")
    if options.initial_controllers and "controller" not in config.roles:
        raise Refused("You can only use --initial-controllers on a controller.")
    chosen = config.quorum_voters or is_voter or options.no_initial_controllers
    if "controller" in config.roles and not chosen:
        raise Refused(_NO_VOTERS)


def _levels(options: argparse.Namespace) -> dict[str, int]:
    """The levels a new cluster shall begin with; Refused if they are not served or were named twice."""
    named = release(options.release_version or RELEASE)
    typed = dict(map(_feature, options.feature))
    if METADATA_VERSION in typed and options.release_version:
        raise Refused(f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity.")
    level = typed.pop(METADATA_VERSION, metadata_level(named))
    _, last = SUPPORTED[METADATA_VERSION]
    if not metadata_level(RELEASE) <= level <= last:
        raise Refused(f"{METADATA_VERSION} {release_of(level) or level} is not served: {RELEASE} to {LATEST} are.")
    is_dynamic = bool(options.standalone or options.initial_controllers or options.no_initial_controllers)
    if typed.pop(KRAFT_VERSION, int(is_dynamic)) != is_dynamic:
        raise Refused(f"{KRAFT_VERSION} is {int(is_dynamic)} in a quorum that is formatted like this.")
    usual = default_levels(release_of(level) or RELEASE)
    usual.pop(KRAFT_VERSION)
    return {METADATA_VERSION: level} | {name: max(usual[name], FINALIZED.get(name, 0)) for name in usual} | typed


def _feature(text: str) -> tuple[str, int]:
    """A level that was typed, which is one of those that are served."""
    name, level = feature_and_level(text)
    if name not in SUPPORTED:
        raise Refused(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(SUPPORTED))}")
    low, high = SUPPORTED[name]
    if not low <= level <= high:
        raise Refused(f"No feature:{name} with feature level {level}")
    return name, level


def _check_same_node(path: Path, meta: MetaProperties, config: BrokerConfig, cluster_id: str) -> None:
    file = path / META_PROPERTIES
    if meta.cluster_id != cluster_id:
        raise Refused(f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {meta.cluster_id}")
    if meta.node_id != config.node_id:
        raise Refused(_OTHER_NODE.format(meta.node_id, config.node_id, file))
