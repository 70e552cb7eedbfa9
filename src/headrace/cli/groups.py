"""kafka-groups: which groups of every kind there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.group_queries import TYPES, Listing, list_groups, parse_name
from headrace.cli.java_words import sentence_of
from headrace.cli.session import describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, not_together
from headrace.model.errors import HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

TOOL = Tool(
    name="kafka-groups",
    summary="This tool helps to list groups of all types.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="list", help="List the groups."),
        Option(name="group-type", argument="type", help="Only groups of this type: classic, consumer, share, streams."),
        Option(name="protocol", argument="protocol", help="Only groups of this protocol."),
        Option(name="consumer", help="Only groups of consumers, of the new protocol, the classic one or none."),
        Option(name="share", help="Only share groups."),
        Option(name="streams", help="Only streams groups."),
    ),
    examples=(("Which groups there are", "--bootstrap-server localhost:9092 --list"),),
)

_WIDTH = 20
_FILTERS = ("consumer", "share", "streams")


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=_refusal)


def _refusal(error: HeadraceError) -> str:
    what = sentence_of(error) if isinstance(error, KafkaError) else describe(error)
    return f"Error while executing groups command : {what}"


def _check(values: Values) -> None:
    if not values.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    if values.has("group-type") and parse_name(values.require("group-type"), TYPES) is None:
        raise UsageError("--group-type must be a valid group type.")
    for name in _FILTERS:
        not_together(values, name, [other for other in (*_FILTERS, "group-type", "protocol") if other != name])


async def _run(session: Session) -> int:
    groups = [one for one in await list_groups(session.cluster) if _passes(session.values, one)]
    rows = [[one.group_id, one.kind, one.protocol] for one in groups]
    width = max([_WIDTH, *(len(text) for row in rows for text in row)])
    session.report.line(" ".join(f"{text:<{width}}" for text in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        session.report.line("".join(f"{text:<{width}} " for text in row))
    session.report.data(
        [{"group": one.group_id, "type": one.kind, "protocol": one.protocol, "state": one.state} for one in groups]
    )
    return 0


def _passes(values: Values, group: Listing) -> bool:
    """Whether a group is one of those that were asked for."""
    if values.has("group-type"):
        protocol = values.get("protocol")
        return group.kind == parse_name(values.require("group-type"), TYPES) and protocol in {None, group.protocol}
    if values.has("protocol"):
        return group.protocol == values.get("protocol")
    if values.has("consumer"):
        return group.protocol in {"consumer", ""} or group.kind == "Consumer"
    return all(group.kind == kind for name, kind in (("share", "Share"), ("streams", "Streams")) if values.has(name))
