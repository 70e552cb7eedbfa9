"""kafka-cluster: the id of a cluster, its endpoints, and brokers that shall be forgotten."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, settle_address
from headrace.cli.administration import ask_controller, check
from headrace.cli.java_words import exception
from headrace.cli.session import Failure
from headrace.cli.subcommands import Command, run_commands
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool
from headrace.client.fault import NotServed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from headrace.cli.session import Session

DESCRIBE_CLUSTER, UNREGISTER_BROKER = 60, 64
BROKERS, CONTROLLERS = 1, 2
_WIDTH = 10

TOOL = Tool(
    name="kafka-cluster",
    summary="The Kafka cluster tool: kafka-cluster {cluster-id,unregister,list-endpoints} ...",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        Option(
            name="config",
            argument="file",
            help="A properties file with the client's settings.",
            replaced_by="command-config",
            warning="Option --config has been deprecated and will be removed in a future version. Use --command-config "
            "instead.",
            conflict="kafka-cluster: error: --config and --command-config cannot be specified together.",
        ),
        Option(name="id", argument="id", help="unregister: the broker to forget."),
        Option(name="include-fenced-brokers", help="list-endpoints: brokers that are fenced too."),
    ),
    examples=(
        ("The id of the cluster", "cluster-id --bootstrap-server localhost:9092"),
        ("Where its brokers are", "list-endpoints --bootstrap-server localhost:9092"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    short = {"-b": "--bootstrap-server", "-C": "--bootstrap-controller", "-c": "--command-config", "-i": "--id"}
    return run_commands(TOOL, COMMANDS, arguments, program, short=short)


async def _describe(session: Session, *, include_fenced: bool = False) -> Any:
    from headrace.wire.messages.describe_cluster import DescribeClusterRequest

    settle_address(
        session,
        "kafka-cluster: error: one of the arguments --bootstrap-server --bootstrap-controller is required",
        with_usage=True,
    )
    kind = CONTROLLERS if session.values.has("bootstrap-controller") else BROKERS
    request = DescribeClusterRequest(endpoint_type=kind, include_fenced_brokers=include_fenced)
    answer = await session.cluster.ask(DESCRIBE_CLUSTER, request)
    check(answer.error_code, answer.error_message)
    return answer


async def _cluster_id(session: Session) -> int:
    cluster_id = (await _describe(session)).cluster_id
    session.report.line(
        f"Cluster ID: {cluster_id}" if cluster_id else "No cluster ID found. The Kafka version is probably too old."
    )
    session.report.data({"clusterId": cluster_id or None})
    return 0 if cluster_id else 1


async def _unregister(session: Session) -> int:
    from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest

    broker = session.values.number("id") or 0
    settle_address(session)
    request = UnregisterBrokerRequest(broker_id=broker)
    try:
        answer = await ask_controller(session.cluster, UNREGISTER_BROKER, request)
    except NotServed:
        print("The target cluster does not support the broker unregistration API.", file=_stream(session))
        return 1
    if answer.error_code:
        raise Failure(exception(answer.error_code, answer.error_message))
    session.report.line(f"Broker {broker} is no longer registered.")
    session.report.data({"unregistered": broker})
    return 0


def _stream(session: Session) -> Any:
    return sys.stdout if session.report.is_text else sys.stderr


async def _list_endpoints(session: Session) -> int:
    is_of_controllers = session.values.has("bootstrap-controller")
    include_fenced = session.values.has("include-fenced-brokers")
    if is_of_controllers and include_fenced:
        raise Failure("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    answer = await _describe(session, include_fenced=include_fenced)
    kind = "controller" if is_of_controllers else "broker"
    nodes = sorted(answer.brokers, key=lambda node: int(node.broker_id))
    hosts = max((len(node.host) for node in nodes), default=100)
    racks = max((len(node.rack) for node in nodes if node.rack), default=_WIDTH)
    rows = [["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]]
    rows += [
        [
            str(node.broker_id),
            node.host,
            str(node.port),
            node.rack or "null",
            "fenced" if node.is_fenced else "unfenced",
            kind,
        ]
        for node in nodes
    ]
    widths = [_WIDTH, hosts, _WIDTH, racks, _WIDTH, 15]
    hidden = 4 if is_of_controllers else None
    for row in rows:
        session.report.line(
            " ".join(
                f"{text:<{width}}"
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
                if place != hidden
            )
        )
    session.report.data(
        [
            {
                "id": node.broker_id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "isFenced": node.is_fenced,
                "type": kind,
            }
            for node in nodes
        ]
    )
    return 0


COMMANDS = {
    "cluster-id": Command(work=_cluster_id),
    "unregister": Command(work=_unregister, options=("id",), required=("id",)),
    "list-endpoints": Command(work=_list_endpoints, options=("include-fenced-brokers",)),
}
