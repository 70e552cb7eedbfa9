"""kafka-share-groups: list, describe and delete share groups, and say where they go on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.columns import BARE, columns, fixed, least
from headrace.cli.consumer_group_views import assignment_text
from headrace.cli.group_deletion import print_deletions
from headrace.cli.group_kind import GroupKind
from headrace.cli.group_options import (
    ONLY_WITH,
    check_describe,
    check_only_with,
    chosen,
    need_mode,
    not_both_modes,
    one_scenario,
)
from headrace.cli.group_queries import by_topic, delete_group, for_each
from headrace.cli.java_words import exception, sentence_of
from headrace.cli.offset_reset import SCENARIOS, WRAPPED, Reset, print_plans, remedy, told_as
from headrace.cli.session import Failure, run_tool
from headrace.cli.share_group_queries import (
    TYPES_OF_SHARE,
    alter_share_starts,
    delete_share_starts,
    describe_share_group,
    share_starts,
)
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, exactly_one, not_together
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.group_queries import GroupView
    from headrace.cli.session import Session

TOOL = Tool(
    name="kafka-share-groups",
    summary=(
        "This tool helps to list all share groups, describe a share group, delete share group info, "
        "or reset share group offsets."
    ),
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="list", help="List all share groups."),
        Option(name="describe", help="Show a group's offsets, or with --members or --state the like."),
        Option(name="delete", help="Delete groups that have no members."),
        Option(name="reset-offsets", help="Let a group that has no members go on elsewhere."),
        Option(name="delete-offsets", help="Let a group forget topics."),
        Option(name="group", argument="group", is_repeatable=True, help="The group to act on; may be repeated."),
        Option(name="all-groups", help="Act on all groups."),
        Option(
            name="topic",
            argument="topic[:0,1,...]",
            is_repeatable=True,
            help="The topic whose offsets to reset or to delete, all its partitions or these; may be repeated.",
        ),
        Option(name="all-topics", help="Reset the offsets of every topic the group has to do with."),
        Option(name="timeout", argument="ms", default="30000", help="How long to wait for an answer."),
        Option(name="offsets", help="With --describe: partitions and offsets. What is shown if nothing is said."),
        Option(name="members", help="With --describe: who is in the group."),
        Option(
            name="state",
            argument="states",
            is_argument_optional=True,
            help="With --describe: the state. With --list: only groups in these states (Empty,Stable,Dead).",
        ),
        Option(name="verbose", help="With --describe: more columns."),
        Option(name="dry-run", help="With --reset-offsets: only show what would be done."),
        Option(name="execute", help="With --reset-offsets: do it."),
        Option(name="to-earliest", help="Go on where the partitions begin."),
        Option(name="to-latest", help="Go on where the partitions end."),
        Option(name="to-datetime", argument="YYYY-MM-DDThh:mm:ss.sss", help="Go on with the first record since then."),
    ),
    examples=(
        ("Which share groups there are", "--bootstrap-server localhost:9092 --list"),
        ("How far a group is", "--bootstrap-server localhost:9092 --describe --group workers"),
    ),
)

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIO_NAMES = ("to-datetime", "to-earliest", "to-latest")
KIND = GroupKind(
    word="share", types=TYPES_OF_SHARE, states=("Stable", "Dead", "Empty"), stranger="is not a share group."
)
_OF_THE_GROUP = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
_OF_TOPICS = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=KIND.refusal)


# --- what goes together


def _check(values: Values) -> None:
    check_only_with(values, ONLY_WITH)
    for action, check in _CHECKS.items():
        if values.has(action):
            check(values)
    not_together(values, "group", ["all-groups", "list"])
    not_together(values, "topic", ["list", "describe"])
    message = f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}."
    exactly_one(values, ACTIONS, message)
    chosen(values, "state", KIND.states, "state")


def _check_delete(values: Values) -> None:
    if not values.has("group") and not values.has("all-groups"):
        raise UsageError("Option [delete] takes the options [group] or [all-groups]")
    if values.has("group") and values.has("all-groups"):
        raise UsageError("Option [delete] takes either [group] or [all-groups], not both.")
    if values.has("topic"):
        raise UsageError("Option [delete] does not take the option: [topic]")


def _check_delete_offsets(values: Values) -> None:
    if not values.has("group") or not values.has("topic"):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")


def _check_reset(values: Values) -> None:
    takes = "Option [reset-offsets] takes"
    not_both_modes(values)
    need_mode(values)
    if not values.has("group"):
        raise UsageError(f"{takes} the option: [group]")
    if not values.has("topic") and not values.has("all-topics"):
        raise UsageError(f"{takes} one of these options: [all-topics], [topic]")
    if not any(values.has(name) for name in SCENARIO_NAMES):
        raise UsageError(f"{takes} one of these options: [to-datetime], [to-earliest], [to-latest]")
    one_scenario(values, SCENARIO_NAMES)


_CHECKS = {
    "describe": check_describe,
    "delete": _check_delete,
    "delete-offsets": _check_delete_offsets,
    "reset-offsets": _check_reset,
}


# --- delete


async def _run(session: Session) -> int:
    return await KIND.run(session, _ACTIONS)


async def _delete(session: Session) -> int:
    """Delete groups, after a look at which of them can be."""
    free, obstacles = await KIND.deletable(session)
    codes = await for_each(free, lambda group_id: delete_group(session.cluster, group_id))
    return print_deletions(session, codes, "share", obstacles)


# --- describe


async def _describe(session: Session) -> int:
    with told_as(KIND.failed):
        wanted = sorted(await KIND.wanted(session))
        groups = await for_each(wanted, lambda group_id: describe_share_group(session.cluster, group_id))
    if session.values.has("members"):
        return _show_members(session, groups)
    if session.values.has("state"):
        return _show_states(session, groups)
    return await _show_offsets(session, groups)


def _is_shown(session: Session, group: GroupView) -> bool:
    """Say what Kafka's tool says about the group's state; whether there is a group."""
    if group.state == "Dead":
        session.report.note(f"\nError: Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        print(f"\nShare group '{group.group_id}' has no active members.", file=sys.stderr)
    return group.state != "Dead"


def _print(session: Session, lines: Sequence[str]) -> None:
    session.report.line()
    for line in lines:
        session.report.line(line)


async def _show_offsets(session: Session, groups: Mapping[str, GroupView]) -> int:
    with told_as(KIND.failed + WRAPPED):
        starts = await for_each(groups, lambda group_id: share_starts(session.cluster, group_id))
    is_verbose, documents = session.values.has("verbose"), []
    for group_id, found in starts.items():
        rows: list[list[Any]] = [
            [group_id, topic, index, one.leader_epoch, one.start_offset, one.lag]
            for (topic, index), one in sorted(found.items())
        ]
        names = ("group", "topic", "partition", "leaderEpoch", "startOffset", "lag")
        documents += [dict(zip(names, row, strict=True)) for row in rows]
        if not rows:
            session.report.line(f"\nShare group '{group_id}' has no offset information.")
            continue
        table = [["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"], *rows]
        widths = [least(15), least(15), fixed(10), fixed(13), fixed(13), BARE]
        shown = [place for place in range(6) if is_verbose or place != 3]
        _print(session, columns([[row[place] for place in shown] for row in table], [widths[place] for place in shown]))
    session.report.data(documents)
    return 0


def _show_members(session: Session, groups: Mapping[str, GroupView]) -> int:
    is_verbose = session.values.has("verbose")
    heading = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"]
    widths = [least(15), least(15), least(15), least(15), fixed(12), fixed(13), BARE]
    shown = [place for place in range(7) if is_verbose or place != 5]
    for group in groups.values():
        if _is_shown(session, group) and group.members:
            table = [heading, *(_member_row(group, one) for one in group.members)]
            _print(
                session,
                columns([[row[place] for place in shown] for row in table], [widths[place] for place in shown]),
            )
    session.report.data(
        [
            {
                "group": group.group_id,
                "state": group.state,
                "members": [
                    {
                        "consumerId": one.member_id,
                        "host": one.host,
                        "clientId": one.client_id,
                        "memberEpoch": one.epoch,
                        "assignment": by_topic(sorted(one.assignment)),
                    }
                    for one in group.members
                ],
            }
            for group in groups.values()
        ]
    )
    return _exit_code(groups)


def _member_row(group: GroupView, member: Any) -> list[Any]:
    count = len(set(member.assignment))
    text = assignment_text(member.assignment)
    return [group.group_id, member.member_id, member.host, member.client_id, count, member.epoch, text]


def _show_states(session: Session, groups: Mapping[str, GroupView]) -> int:
    for group in groups.values():
        _is_shown(session, group)
        heading: list[object] = ["GROUP", "COORDINATOR (ID)", "STATE"]
        row: list[object] = [group.group_id, group.coordinator, group.state]
        widths = [least(15), least(25), fixed(15)]
        if session.values.has("verbose"):
            heading += ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
            row += [group.epoch, group.assignment_epoch]
            widths += [fixed(12), fixed(17)]
        _print(session, columns([[*heading, "#MEMBERS"], [*row, len(group.members)]], [*widths, BARE]))
    session.report.data(
        [
            {
                "group": group.group_id,
                "coordinator": {
                    "id": group.coordinator.node_id,
                    "host": group.coordinator.host,
                    "port": group.coordinator.port,
                },
                "state": group.state,
                "groupEpoch": group.epoch,
                "assignmentEpoch": group.assignment_epoch,
                "members": len(group.members),
            }
            for group in groups.values()
        ]
    )
    return _exit_code(groups)


def _exit_code(groups: Mapping[str, GroupView]) -> int:
    return int(any(group.state == "Dead" for group in groups.values()))


# --- offsets


async def _reset(session: Session) -> int:
    values, group_id = session.values, session.values.require("group")
    try:
        state = (await describe_share_group(session.cluster, group_id)).state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise Failure(sentence_of(error), remedy=remedy(error)) from error
        state = "Dead"
    if state not in {"Empty", "Dead"}:
        raise Failure(f"Share group '{group_id}' is not empty.", remedy="Stop its members first, then try again.")
    reset = Reset(session, KIND.failed)
    if values.has("topic"):
        places = await reset.partitions(values.all("topic"))
    else:
        places = list(await share_starts(session.cluster, group_id))
    await reset.check(places)
    name = next(name for name in SCENARIO_NAMES if values.has(name))
    plan = await SCENARIOS[name](reset, places, {})
    if plan and values.has("execute"):
        await alter_share_starts(session.cluster, group_id, plan)
    print_plans(session.report, {group_id: plan})
    return 0


async def _delete_offsets(session: Session) -> int:
    group_id = session.values.require("group")
    topics = list(dict.fromkeys(session.values.all("topic")))
    results: dict[str, KafkaError | None]
    try:
        results = await delete_share_starts(session.cluster, group_id, topics)
    except KafkaError as error:
        results = dict.fromkeys(topics, error)
        if error.code in _OF_THE_GROUP:
            session.report.line(f"\nError: {sentence_of(error)}")
        elif error.code not in _OF_TOPICS:
            session.report.line(f"\nError: Encounter some unknown error: {exception(error.code, error.message)}")
    rows = [
        [topic, "Successful" if error is None else f"Error: {sentence_of(error)}"]
        for topic, error in sorted(results.items())
    ]
    failure = next((error for error in results.values() if error is not None), None)
    _print(session, columns([["TOPIC", "STATUS"], *rows], [least(15), BARE]))
    session.report.data([{"topic": topic, "status": status} for topic, status in rows])
    if failure is not None and (advice := remedy(failure)):
        print(advice, file=sys.stderr)
    return int(failure is not None)


_ACTIONS = {
    "list": KIND.list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset,
    "delete-offsets": _delete_offsets,
}
