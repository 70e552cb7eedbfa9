"""kafka-consumer-groups: list, describe and delete groups of consumers, move and forget their offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.addresses import ZOOKEEPER, settle_address
from headrace.cli.consumer_group_views import FAILED, show_members, show_offsets, show_states
from headrace.cli.group_deletion import print_deletions
from headrace.cli.group_options import (
    ONLY_WITH,
    check_describe,
    check_only_with,
    chosen,
    need_groups,
    not_both_modes,
    one_scenario,
)
from headrace.cli.group_queries import (
    PROTOCOLS_OF_CONSUMERS,
    STATES,
    TYPES_OF_CONSUMERS,
    NotOfConsumers,
    committed,
    delete_group,
    describe_group,
    for_each,
    list_groups,
    obey_timeout,
)
from headrace.cli.java_order import hash_order
from headrace.cli.java_words import exception, sentence_of
from headrace.cli.offset_reset import INACTIVE, SCENARIO_NAMES, WRAPPED, Reset, remedy, told_as
from headrace.cli.old_names import BROKER_LIST, NEW_CONSUMER, adopt
from headrace.cli.session import Failure, describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, exactly_one, not_together
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.group_queries import GroupView
    from headrace.cli.offset_reset import Plan
    from headrace.cli.session import Session

TOOL = Tool(
    name="kafka-consumer-groups",
    summary=(
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, "
        "or reset consumer group offsets."
    ),
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        ZOOKEEPER,
        BROKER_LIST,
        NEW_CONSUMER,
        Option(name="list", help="List all consumer groups."),
        Option(name="describe", help="Show a group's offsets and lag, or with --members or --state the like."),
        Option(name="delete", help="Delete groups that have no members, with their offsets."),
        Option(name="reset-offsets", help="Move the offsets of groups that have no members."),
        Option(name="delete-offsets", help="Forget a group's offsets of some topics."),
        Option(name="validate-regex", argument="regex", help="Say whether this is a regular expression of RE2."),
        Option(name="group", argument="group", is_repeatable=True, help="The group to act on; may be repeated."),
        Option(name="all-groups", help="Act on all groups."),
        Option(
            name="topic",
            argument="topic[:0,1,...]",
            is_repeatable=True,
            help="The topic whose offsets to move or to forget, all its partitions or these; may be repeated.",
        ),
        Option(name="all-topics", help="Move the offsets of every topic the group has committed."),
        Option(name="timeout", argument="ms", default="30000", help="How long to wait for an answer."),
        Option(name="offsets", help="With --describe: partitions, offsets and lag. What is shown if nothing is said."),
        Option(name="members", help="With --describe: who is in the group."),
        Option(
            name="state",
            argument="states",
            is_argument_optional=True,
            help="With --describe: the state. With --list: only groups in these states (stable,empty) or a column.",
        ),
        Option(
            name="type",
            argument="types",
            is_argument_optional=True,
            help="With --list: only groups of these types (classic,consumer), or a column.",
        ),
        Option(name="verbose", help="With --describe: more columns."),
        Option(name="dry-run", help="With --reset-offsets: only show what would be done."),
        Option(name="execute", help="With --reset-offsets: do it."),
        Option(name="export", help="With --reset-offsets: print CSV, for --from-file."),
        Option(name="to-offset", argument="offset", help="Move to this offset."),
        Option(name="to-earliest", help="Move to where the partitions begin."),
        Option(name="to-latest", help="Move to where the partitions end."),
        Option(name="to-current", help="Move to where the group is; to the end where it has committed nothing."),
        Option(name="shift-by", argument="count", help="Move forward by so many records, or back if negative."),
        Option(name="to-datetime", argument="YYYY-MM-DDThh:mm:ss.sss", help="Move to the first record since then."),
        Option(name="by-duration", argument="PnDTnHnMnS", help="Move to the first record no older than this."),
        Option(name="from-file", argument="file", help="Move to the offsets in a CSV file."),
    ),
    examples=(
        ("Which groups there are", "--bootstrap-server localhost:9092 --list"),
        ("How far a group is behind", "--bootstrap-server localhost:9092 --describe --group panel"),
        (
            "Read a topic again from its beginning",
            "--bootstrap-server localhost:9092 --reset-offsets --group panel --topic trucks --to-earliest --execute",
        ),
    ),
)

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
NO_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)
_VALID_STATES = tuple(state for state in STATES if state != "NotReady")


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=_refusal)


def _refusal(error: HeadraceError) -> str:
    return FAILED + (sentence_of(error) if isinstance(error, KafkaError) else describe(error))


# --- what goes together


def _check(values: Values) -> None:
    adopt(values, {"broker-list": "bootstrap-server"})
    check_only_with(values, ONLY_WITH | {"type": ("list",)})
    for action, check in _CHECKS.items():
        if values.has(action):
            check(values)
    not_together(values, "group", ["all-groups", "list"])
    not_together(values, "topic", ["list", "describe"])
    message = f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}"
    exactly_one(values, ACTIONS, message)
    chosen(values, "state", _VALID_STATES, "state")
    chosen(values, "type", TYPES_OF_CONSUMERS, "types")


def _check_delete(values: Values) -> None:
    need_groups(values, "delete")
    if values.has("topic"):
        raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")


def _check_delete_offsets(values: Values) -> None:
    if not values.has("group") or not values.has("topic"):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")


def _check_reset(values: Values) -> None:
    not_both_modes(values)
    if not values.has("dry-run") and not values.has("execute"):
        print(NO_EXECUTE, file=sys.stderr)
    need_groups(values, "reset-offsets")
    one_scenario(values, SCENARIO_NAMES)


_CHECKS = {
    "describe": check_describe,
    "delete": _check_delete,
    "delete-offsets": _check_delete_offsets,
    "reset-offsets": _check_reset,
}


# --- actions


async def _run(session: Session) -> int:
    values = session.values
    if values.has("validate-regex"):
        return _validate_regex(session, values.require("validate-regex"))
    settle_address(session)
    obey_timeout(session)
    action = next(action for action in _ACTIONS if values.has(action))
    try:
        return await _ACTIONS[action](session)
    except KafkaError as error:
        raise Failure(_refusal(error), on_stdout=True, remedy=remedy(error)) from error


def _validate_regex(session: Session, regex: str) -> int:
    from headrace.cli.re2_words import fault_of

    fault = fault_of(regex)
    session.report.line(
        f"The regular expression `{regex}` is valid."
        if fault is None
        else f"The regular expression `{regex}` is invalid: {fault}."
    )
    session.report.data({"regex": regex, "valid": fault is None, "error": fault})
    return int(fault is not None)


async def _list(session: Session) -> int:
    values = session.values
    states = chosen(values, "state", _VALID_STATES, "state")
    types = chosen(values, "type", TYPES_OF_CONSUMERS, "types")
    is_plain = not values.has("state") and not values.has("type")
    with told_as(FAILED + (WRAPPED if is_plain else "")):
        groups = await list_groups(
            session.cluster,
            states=states,
            types=types or (TYPES_OF_CONSUMERS if is_plain else ()),
            protocols=PROTOCOLS_OF_CONSUMERS,
        )
    if is_plain:
        for group in groups:
            session.report.line(group.group_id)
    else:
        width = max([15, *(len(group.group_id) for group in groups)]) + 10
        shown = [name for name in ("type", "state") if values.has(name)]
        rows = [["GROUP", *(name.upper() for name in shown)]]
        rows += [[one.group_id, *({"type": one.kind, "state": one.state}[name] for name in shown)] for one in groups]
        for row in rows:
            session.report.line(" ".join([f"{row[0]:<{width}}", *(f"{text:<20}" for text in row[1:])]))
    session.report.data(
        [{"group": one.group_id, "type": one.kind, "protocol": one.protocol, "state": one.state} for one in groups]
    )
    return 0


async def _groups(session: Session) -> list[str]:
    """The groups that were asked for."""
    if not session.values.has("all-groups"):
        return list(dict.fromkeys(session.values.all("group")))
    with told_as(FAILED + WRAPPED):
        found = await list_groups(session.cluster, types=TYPES_OF_CONSUMERS, protocols=PROTOCOLS_OF_CONSUMERS)
    return [one.group_id for one in found]


async def _view(session: Session, group_id: str) -> GroupView:
    try:
        return await describe_group(session.cluster, group_id)
    except NotOfConsumers as error:
        raise Failure(f"{FAILED}java.lang.IllegalArgumentException: {error}", on_stdout=True) from None


async def _describe(session: Session) -> int:
    with told_as(FAILED):
        found = await for_each(sorted(await _groups(session)), lambda group_id: _view(session, group_id))
    if session.values.has("members"):
        return show_members(session, found)
    if session.values.has("state"):
        return show_states(session, found)
    return await show_offsets(session, found)


async def _delete(session: Session) -> int:
    codes = await for_each(await _groups(session), lambda group_id: delete_group(session.cluster, group_id))
    return print_deletions(session, codes, "consumer")


async def _delete_offsets(session: Session) -> int:
    from headrace.cli.offset_deletion import forget, partitions_of

    return await forget(session, *await partitions_of(session, session.values.all("topic")))


# --- moving offsets


async def _reset(session: Session) -> int:
    plans: dict[str, Plan] = {}
    code = 0
    group_ids = hash_order(await _groups(session))
    reset = Reset(session, FAILED)
    states = await for_each(group_ids, lambda group_id: _state(session, group_id))
    for group_id in group_ids:
        state = states[group_id]
        plan = await _reset_one(session, reset, group_id) if state in INACTIVE else reset.refuse(group_id, state)
        plans[group_id] = plan or {}
        code |= int(plan is None)
    reset.finish(plans)
    return code


async def _state(session: Session, group_id: str) -> str:
    """The state of a group; one that does not exist may be given offsets like an empty one."""
    try:
        return (await _view(session, group_id)).state
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return "Dead"
        raise Failure(f"{FAILED}{WRAPPED}{exception(error.code, error.message)}", on_stdout=True) from error


async def _reset_one(session: Session, reset: Reset, group_id: str) -> Plan | None:
    """Plan for one group and carry it out if that was asked for; None if the file has no plan for it."""
    from headrace.cli.group_queries import commit

    values = session.values
    places = []
    if values.has("all-topics"):
        with told_as(FAILED + WRAPPED):
            places = list(await committed(session.cluster, group_id))
    elif values.has("topic"):
        places = await reset.partitions(values.all("topic"))
    elif not values.has("from-file"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    await reset.check(places)
    plan = await reset.planned(group_id, places, lambda: committed(session.cluster, group_id))
    if plan and values.has("execute"):
        await commit(session.cluster, group_id, plan)
    return plan


_ACTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset,
    "delete-offsets": _delete_offsets,
}
