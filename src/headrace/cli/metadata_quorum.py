"""kafka-metadata-quorum: how the controllers stand, and which of them have a vote."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, settle_address
from headrace.cli.administration import ask_controller, check, is_of_controllers
from headrace.cli.java_words import exception
from headrace.cli.session import Failure
from headrace.cli.subcommands import Command, run_commands
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID, decode_uuid, encode_uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.cli.session import Session

DESCRIBE_QUORUM, DESCRIBE_CLUSTER, ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 55, 60, 80, 81
_TIMEOUT_MS = 30_000
_INVALID = "Is this a valid controller configuration file?"
_COLUMNS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")

TOOL = Tool(
    name="kafka-metadata-quorum",
    summary="This tool describes kraft metadata quorum status: kafka-metadata-quorum --bootstrap-server host:port "
    "{describe,add-controller,remove-controller} ...",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        Option(name="status", help="describe: a short summary of the quorum."),
        Option(name="replication", help="describe: how far each node has got."),
        Option(name="human-readable", help="describe --replication: times as how long ago."),
        Option(name="controller-id", argument="id", help="remove-controller: the controller to remove."),
        Option(name="controller-directory-id", argument="id", help="remove-controller: its directory's id."),
        Option(name="dry-run", help="Say what would be done, but do not do it."),
    ),
    examples=(
        ("Who leads", "--bootstrap-server localhost:9092 describe --status"),
        ("Who lags", "--bootstrap-server localhost:9092 describe --replication --human-readable"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    short = {"-i": "--controller-id", "-d": "--controller-directory-id"}
    return run_commands(TOOL, COMMANDS, arguments, program, short=short, help_is_success=True)


def _settle(session: Session) -> None:
    settle_address(
        session,
        "kafka-metadata-quorum: error: one of the arguments --bootstrap-server --bootstrap-controller is required",
        with_usage=True,
    )


# --- describing


async def _describe(session: Session) -> int:
    values = session.values
    if values.has("status") and values.has("replication"):
        raise Failure("Only one of --status or --replication should be specified with describe sub-command")
    if values.has("status"):
        if values.has("human-readable"):
            raise Failure("The option --human-readable is only supported along with --replication")
        await _show_status(session)
    elif values.has("replication"):
        await _show_replication(session)
    else:
        raise Failure("One of --status or --replication must be specified with describe sub-command")
    return 0


async def _quorum(session: Session) -> tuple[Any, dict[int, Any]]:
    """The state of the metadata log, and where the nodes are."""
    from headrace.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

    _settle(session)
    await _check_address(session)
    asked = RequestTopicData(topic_name="__cluster_metadata", partitions=(RequestPartitionData(partition_index=0),))
    answer = await ask_controller(session.cluster, DESCRIBE_QUORUM, DescribeQuorumRequest(topics=(asked,)))
    check(answer.error_code, answer.error_message)
    ((partition,),) = (topic.partitions for topic in answer.topics)
    check(partition.error_code, partition.error_message)
    return partition, {node.node_id: node for node in answer.nodes}


async def _check_address(session: Session) -> None:
    """Refuse the address of a broker given as that of a controller, and the other way round, as Kafka's client does."""
    wants_controllers = session.values.has("bootstrap-controller")
    if await is_of_controllers(session.cluster) == wants_controllers:
        return
    if wants_controllers:
        mismatch = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        told = exception(ErrorCode.MISMATCHED_ENDPOINT_TYPE, mismatch)
        raise Failure(told, remedy="This is a broker's address: say --bootstrap-server.")
    told = exception(ErrorCode.UNSUPPORTED_VERSION, "The node does not support METADATA")
    raise Failure(told, remedy="This is a controller's address: say --bootstrap-controller.")


def _leader(quorum: Any) -> Any:
    for voter in quorum.current_voters:
        if voter.replica_id == quorum.leader_id:
            return voter
    raise Failure(f"The leader {quorum.leader_id} is not among the voters.", remedy="Try again: it may just change.")


async def _show_status(session: Session) -> None:
    from headrace.wire.messages.describe_cluster import DescribeClusterRequest

    quorum, nodes = await _quorum(session)
    kind = 2 if session.values.has("bootstrap-controller") else 1
    cluster = await session.cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=kind))
    check(cluster.error_code, cluster.error_message)
    leader = _leader(quorum)
    slowest = min(quorum.current_voters, key=lambda voter: int(voter.log_end_offset))
    lag_ms = 0
    if slowest is not leader:
        times = (leader.last_caught_up_timestamp, slowest.last_caught_up_timestamp)
        lag_ms = times[0] - times[1] if min(times) >= 0 else -1
    facts = {
        "ClusterId": cluster.cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
    }
    for name, value in facts.items():
        session.report.line(f"{name + ':':<24}{value}")
    session.report.line(f"{'CurrentVoters:':<24}{_nodes(quorum.current_voters, nodes)}")
    session.report.line(f"{'CurrentObservers:':<24}{_nodes(quorum.observers, nodes)}")
    session.report.data(
        {name[0].lower() + name[1:]: value for name, value in facts.items()}
        | {
            "currentVoters": [_node_document(voter, nodes) for voter in quorum.current_voters],
            "currentObservers": [_node_document(one, nodes) for one in quorum.observers],
        }
    )


def _nodes(replicas: Iterable[Any], nodes: dict[int, Any]) -> str:
    return "[" + ", ".join(_node(replica, nodes) for replica in replicas) + "]"


def _node(replica: Any, nodes: dict[int, Any]) -> str:
    parts = [f'"id": {replica.replica_id}']
    if replica.replica_directory_id != ZERO_ID:
        parts.append(f'"directoryId": "{encode_uuid(replica.replica_directory_id)}"')
    endpoints = _endpoints(replica.replica_id, nodes)
    if endpoints:
        parts.append('"endpoints": [' + ", ".join(f'"{endpoint}"' for endpoint in endpoints) + "]")
    return "{" + ", ".join(parts) + "}"


def _endpoints(node_id: int, nodes: dict[int, Any]) -> list[str]:
    node = nodes.get(node_id)
    return [_endpoint(one.name, one.host, one.port) for one in node.listeners] if node is not None else []


def _endpoint(name: str, host: str, port: int) -> str:
    return f"{name}://{f'[{host}]' if ':' in host else host}:{port}"


def _node_document(replica: Any, nodes: dict[int, Any]) -> dict[str, Any]:
    return {
        "id": replica.replica_id,
        "directoryId": _directory(replica),
        "endpoints": _endpoints(replica.replica_id, nodes),
    }


def _directory(replica: Any) -> str:
    return encode_uuid(replica.replica_directory_id)


async def _show_replication(session: Session) -> None:
    quorum, _ = await _quorum(session)
    leader = _leader(quorum)
    followers = [voter for voter in quorum.current_voters if voter is not leader]
    states = [(leader, "Leader")]
    states += [(voter, "Follower") for voter in followers] + [(one, "Observer") for one in quorum.observers]
    is_human = session.values.has("human-readable")
    rows = [list(_COLUMNS)]
    for replica, status in states:
        rows.append(
            [
                str(replica.replica_id),
                _directory(replica),
                str(replica.log_end_offset),
                str(leader.log_end_offset - replica.log_end_offset),
                _when(replica.last_fetch_timestamp, "last fetch", is_human=is_human),
                _when(replica.last_caught_up_timestamp, "last caught up", is_human=is_human),
                status,
            ]
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    for row in rows:
        session.report.line("".join(f"{text:<{width}}\t" for text, width in zip(row, widths, strict=True)))
    session.report.data(
        [
            {
                "nodeId": replica.replica_id,
                "directoryId": _directory(replica),
                "logEndOffset": replica.log_end_offset,
                "lag": leader.log_end_offset - replica.log_end_offset,
                "lastFetchTimestamp": replica.last_fetch_timestamp,
                "lastCaughtUpTimestamp": replica.last_caught_up_timestamp,
                "status": status,
            }
            for replica, status in states
        ]
    )


def _when(timestamp_ms: int, what: str, *, is_human: bool) -> str:
    if timestamp_ms < 0:
        return "-1"
    if not is_human:
        return str(timestamp_ms)
    now_ms = int(time.time() * 1000)
    if not 0 < timestamp_ms <= now_ms:
        raise Failure(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {what} timestamp is {timestamp_ms}"
        )
    return f"{now_ms - timestamp_ms} ms ago"


# --- who has a vote


async def _remove_controller(session: Session) -> int:
    from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

    values = session.values
    controller = values.number("controller-id") or 0
    text = values.require("controller-directory-id")
    if controller < 0:
        raise Failure(f"Invalid negative --controller-id: {controller}")
    try:
        directory = decode_uuid(text)
    except ValueError as error:
        raise Failure(f"Failed to parse --controller-directory-id: {error}") from None
    if not values.has("dry-run"):
        _settle(session)
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=controller, voter_directory_id=directory)
        answer = await ask_controller(session.cluster, REMOVE_RAFT_VOTER, request)
        if answer.error_code:
            raise Failure(exception(answer.error_code, answer.error_message))
    done = "DRY RUN of removing " if values.has("dry-run") else "Removed "
    session.report.line(f"{done} KRaft controller {controller} with directory id {text}")
    session.report.data({"removed": controller, "directoryId": text, "dryRun": values.has("dry-run")})
    return 0


async def _add_controller(session: Session) -> int:
    from headrace.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener

    values = session.values
    path = values.get("command-config")
    if path is None:
        raise Failure(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    from headrace.settings.properties import load_properties

    properties = load_properties(path)
    controller = _controller_id(properties)
    directory = _directory_id(properties)
    listeners = _controller_listeners(properties)
    if not values.has("dry-run"):
        _settle(session)
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=_TIMEOUT_MS,
            voter_id=controller,
            voter_directory_id=decode_uuid(directory),
            listeners=tuple(Listener(name=name, host=host, port=port) for name, host, port in listeners),
        )
        answer = await ask_controller(session.cluster, ADD_RAFT_VOTER, request)
        if answer.error_code:
            raise Failure(exception(answer.error_code, answer.error_message))
    endpoints = [_endpoint(*listener) for listener in listeners]
    done = "DRY RUN of adding" if values.has("dry-run") else "Added"
    session.report.line(
        f"{done} controller {controller} with directory id {directory} and endpoints: {', '.join(endpoints)}"
    )
    session.report.data(
        {"added": controller, "directoryId": directory, "endpoints": endpoints, "dryRun": values.has("dry-run")}
    )
    return 0


def _controller_id(properties: dict[str, str]) -> int:
    if "node.id" not in properties:
        raise Failure(f"node.id not found in configuration file. {_INVALID}")
    controller = int(properties["node.id"])
    if controller < 0:
        raise Failure(f"node.id was negative in configuration file. {_INVALID}")
    if "controller" not in properties.get("process.roles", ""):
        raise Failure(f"process.roles did not contain 'controller' in configuration file. {_INVALID}")
    return controller


def _directory_id(properties: dict[str, str]) -> str:
    from pathlib import Path

    from headrace.settings.properties import load_properties

    place = properties.get("metadata.log.dir") or properties.get("log.dirs", "").split(",")[0].strip()
    if not place:
        raise Failure(f"Neither metadata.log.dir nor log.dirs were found. {_INVALID}")
    path = Path(place) / "meta.properties"
    if not path.is_file():
        raise Failure(f"Unable to read meta.properties from {place}")
    directory = load_properties(path).get("directory.id")
    if not directory:
        raise Failure(f"No directory id found in {place}")
    return directory


def _controller_listeners(properties: dict[str, str]) -> list[tuple[str, str, int]]:
    """Name, host and port of each listener of the controller; what is advertised comes before what is bound."""
    found: dict[str, tuple[str, int]] = {}
    for setting in ("listeners", "advertised.listeners"):
        for text in filter(None, properties.get(setting, "").split(",")):
            name, _, address = text.strip().partition("://")
            host, _, port = address.rpartition(":")
            found[name.upper()] = (host.removeprefix("[").removesuffix("]") or "localhost", int(port))
    if "controller.listener.names" not in properties:
        raise Failure(f"controller.listener.names was not found. {_INVALID}")
    listeners = []
    for name in properties["controller.listener.names"].split(","):
        normal = name.strip().upper()
        if normal not in found:
            raise Failure(f"Cannot find information about controller listener name: {normal}")
        listeners.append((normal, *found[normal]))
    return listeners


COMMANDS = {
    "describe": Command(work=_describe, options=("status", "replication", "human-readable")),
    "add-controller": Command(work=_add_controller, options=("dry-run",)),
    "remove-controller": Command(
        work=_remove_controller,
        options=("controller-id", "controller-directory-id", "dry-run"),
        required=("controller-id", "controller-directory-id"),
    ),
}
