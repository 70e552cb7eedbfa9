"""kafka-streams-groups: list, describe and delete the groups of Kafka Streams applications, and move their offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.columns import fixed
from headrace.cli.group_deletion import print_deletions
from headrace.cli.group_kind import GroupKind
from headrace.cli.group_options import (
    ONLY_WITH,
    check_describe,
    check_only_with,
    chosen,
    need_groups,
    need_mode,
    not_both_modes,
    one_scenario,
)
from headrace.cli.group_queries import commit, committed, delete_group, for_each
from headrace.cli.java_order import hash_order
from headrace.cli.java_words import exception
from headrace.cli.offset_reset import INACTIVE, SCENARIO_NAMES, WRAPPED, Reset, told_as
from headrace.cli.session import Failure, run_tool
from headrace.cli.streams_group_queries import (
    TYPES_OF_STREAMS,
    delete_topics,
    describe_streams_group,
    input_topics,
    internal_topics,
    is_internal_by_name,
    source_topics,
)
from headrace.cli.streams_group_views import show_members, show_offsets, show_states
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, exactly_one, not_together
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.group_queries import Commit
    from headrace.cli.offset_reset import Plan
    from headrace.cli.session import Session

    Place = tuple[str, int]

TOOL = Tool(
    name="kafka-streams-groups",
    summary="This tool helps to list, or describe streams groups.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="list", help="List all streams groups."),
        Option(name="describe", help="Show a group's offsets and lag, or with --members or --state the like."),
        Option(name="delete", help="Delete groups that have no members, with their offsets."),
        Option(name="reset-offsets", help="Move the offsets of groups that have no members."),
        Option(name="delete-offsets", help="Forget a group's offsets of some topics."),
        Option(name="group", argument="group", is_repeatable=True, help="The group to act on; may be repeated."),
        Option(name="all-groups", help="Act on all groups."),
        Option(
            name="input-topic",
            argument="topic[:0,1,...]",
            is_repeatable=True,
            help="The topic whose offsets to move or to forget, all its partitions or these; may be repeated.",
        ),
        Option(name="all-input-topics", help="Move or forget the offsets of all topics the application reads."),
        Option(name="timeout", argument="ms", default="30000", help="How long to wait for an answer."),
        Option(name="offsets", help="With --describe: partitions and lag. What is shown if nothing is said."),
        Option(name="members", help="With --describe: who is in the group."),
        Option(
            name="state",
            argument="states",
            is_argument_optional=True,
            help="With --describe: the state. With --list: only groups in these states (stable,empty) or a column.",
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
        Option(
            name="delete-internal-topic",
            argument="topic",
            is_repeatable=True,
            help="With --reset-offsets --execute: delete this topic of the application's own; may be repeated.",
        ),
        Option(
            name="delete-all-internal-topics",
            help="With --reset-offsets --execute or --delete: delete all topics of the application's own.",
        ),
    ),
    examples=(
        ("Which streams groups there are", "--bootstrap-server localhost:9092 --list"),
        ("How far an application is behind", "--bootstrap-server localhost:9092 --describe --group word-count"),
    ),
)

ACTIONS = ("list", "describe", "reset-offsets", "delete", "delete-offsets")
KIND = GroupKind(
    word="streams",
    types=TYPES_OF_STREAMS,
    states=("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead"),
    stranger="does not exist or is not a streams group.",
)
_PLAN_WIDTHS = [fixed(30), fixed(30), fixed(10), fixed(15)]


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=KIND.refusal)


# --- what goes together


def _check(values: Values) -> None:
    check_only_with(values, ONLY_WITH)
    for action, check in _CHECKS.items():
        if values.has(action):
            check(values)
    _check_internal_topics(values)
    if (values.has("dry-run") or values.has("execute")) and not values.has("reset-offsets"):
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    not_together(values, "group", ["all-groups", "list"])
    not_together(values, "input-topic", ["list", "describe", "delete"])
    message = (
        "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, or --delete-offsets."
    )
    exactly_one(values, ACTIONS, message)
    chosen(values, "state", KIND.states, "state")


def _check_delete(values: Values) -> None:
    need_groups(values, "delete")
    if values.has("input-topic") or values.has("all-input-topics"):
        raise UsageError("Kafka Streams does not support topic-specific offset deletion from a streams group.")


def _check_delete_offsets(values: Values) -> None:
    groups = values.all("group")
    if not groups or not (values.has("input-topic") or values.has("all-input-topics")):
        raise UsageError(
            "Option [delete-offsets] takes the [group] and one of these options: [all-input-topics], [input-topic]"
        )
    if len(groups) > 1:
        raise UsageError(
            f"Option [delete-offsets] supports only one [group] at a time, but found: [{', '.join(groups)}]"
        )


def _check_reset(values: Values) -> None:
    not_both_modes(values)
    need_mode(values)
    need_groups(values, "reset-offsets")
    one_scenario(values, SCENARIO_NAMES)


def _check_internal_topics(values: Values) -> None:
    is_reset, option = values.has("reset-offsets"), "Option [delete-all-internal-topics]"
    if values.has("delete-all-internal-topics"):
        if not is_reset and not values.has("delete"):
            raise UsageError(
                "Option [delete-all-internal-topics] takes one of these options: [delete], [reset-offsets]"
            )
        if is_reset and not values.has("execute"):
            raise UsageError(f"{option} takes [execute] when [reset-offsets] is used.")
    elif values.has("delete-internal-topic") and not (is_reset and values.has("execute")):
        raise UsageError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


_CHECKS = {
    "describe": check_describe,
    "delete": _check_delete,
    "delete-offsets": _check_delete_offsets,
    "reset-offsets": _check_reset,
}


# --- describe


async def _run(session: Session) -> int:
    return await KIND.run(session, _ACTIONS)


async def _describe(session: Session) -> int:
    with told_as(KIND.failed):
        groups = await for_each(
            await KIND.wanted(session), lambda group_id: describe_streams_group(session.cluster, group_id)
        )
        if session.values.has("members"):
            show_members(session, groups)
        elif session.values.has("state"):
            await show_states(session, groups)
        else:
            await show_offsets(session, groups)
    return int(any(group.group_state == "Dead" for group in groups.values()))


# --- delete


async def _delete(session: Session) -> int:
    """Delete groups, after a look at which of them can be, and their own topics if that was asked for."""
    free, obstacles = await KIND.deletable(session)
    own = {}
    if session.values.has("delete-all-internal-topics"):
        found = await for_each(free, lambda group_id: _internal_topics(session, group_id))
        own = {group_id: topics for group_id, topics in found.items() if topics}
    codes = await for_each(free, lambda group_id: delete_group(session.cluster, group_id))
    gone = [group_id for group_id in hash_order(codes) if not codes[group_id]]
    failures = await _delete_internal_topics(session, {group_id: own[group_id] for group_id in gone if group_id in own})
    code = print_deletions(session, codes, "streams", obstacles, end=".")
    if own and gone:
        _print_topic_deletions(session, [group_id for group_id in gone if group_id in own], failures)
    return code | int(bool(failures))


async def _internal_topics(session: Session, group_id: str) -> list[str]:
    """The application's own topics; one that is not named like one is left alone."""
    group = await describe_streams_group(session.cluster, group_id)
    found = []
    for topic in internal_topics(group):
        if is_internal_by_name(topic, group_id):
            found.append(topic)
        else:
            session.report.note(
                f"\nError: The internal topic '{topic}' is not inferred as internal and thus will not be deleted with "
                f"the group '{group_id}'."
            )
    return found


async def _delete_internal_topics(session: Session, topics: Mapping[str, list[str]]) -> dict[str, KafkaError]:
    """Delete topics by group; the first failure of each group."""
    failures = {}
    for group_id, names in topics.items():
        failed = await delete_topics(session.cluster, names)
        for name in failed:
            session.report.line(f"Failed to delete internal topic: {name}")
        if failed:
            failures[group_id] = next(iter(failed.values()))
    return failures


def _print_topic_deletions(session: Session, groups: Sequence[str], failures: Mapping[str, KafkaError]) -> None:
    if not failures:
        listed = "', '".join(groups)
        session.report.line(
            f"Deletion of associated internal topics of the streams groups ('{listed}') was successful."
        )
        return
    session.report.line("Deletion of some associated internal topics failed:")
    for group_id, error in failures.items():
        session.report.line(
            f"* Internal topics of the streams group '{group_id}' could not be deleted due to: "
            f"{exception(error.code, error.message)}"
        )


# --- offsets


async def _commits(session: Session, group_id: str, *, only_input: bool) -> dict[Place, Commit]:
    """What a group has committed for the topics its topology reads."""
    group = await describe_streams_group(session.cluster, group_id)
    topics = input_topics(group) if only_input else source_topics(group)
    found = await committed(session.cluster, group_id)
    return {place: commit for place, commit in found.items() if place[0] in topics}


async def _delete_offsets(session: Session) -> int:
    from headrace.cli.offset_deletion import forget, partitions_of

    values = session.values
    if values.has("all-input-topics"):
        with told_as(KIND.failed + WRAPPED):
            places = list(await _commits(session, values.require("group"), only_input=True))
        return await forget(session, {}, places)
    return await forget(session, *await partitions_of(session, values.all("input-topic")))


async def _reset(session: Session) -> int:
    plans: dict[str, Plan] = {}
    reset, code = Reset(session, KIND.failed), 0
    for group_id in hash_order(await KIND.wanted(session)):
        state = await _state(session, group_id)
        plan = await _reset_one(session, reset, group_id) if state in INACTIVE else reset.refuse(group_id, state)
        plans[group_id] = plan or {}
        code |= int(plan is None)
        if plan is not None and session.values.has("execute"):
            code |= await _forget_state(session, group_id)
    reset.finish(plans, _PLAN_WIDTHS)
    return code


async def _state(session: Session, group_id: str) -> str:
    try:
        return (await describe_streams_group(session.cluster, group_id)).group_state
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return "Dead"
        raise Failure(f"{KIND.failed}{WRAPPED}{exception(error.code, error.message)}", on_stdout=True) from error


async def _reset_one(session: Session, reset: Reset, group_id: str) -> Plan | None:
    values = session.values
    places: list[Place] | None = []
    if values.has("all-input-topics"):
        with told_as(KIND.failed + WRAPPED):
            places = list(await _commits(session, group_id, only_input=True))
    elif values.has("input-topic"):
        places = await _typed_places(session, reset, group_id)
    elif not values.has("from-file"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    if places is None:
        return None
    plan = await reset.planned(group_id, places, lambda: _commits(session, group_id, only_input=False))
    if plan and values.has("execute"):
        await commit(session.cluster, group_id, plan)
    return plan


async def _typed_places(session: Session, reset: Reset, group_id: str) -> list[Place] | None:
    """The partitions of --input-topic; None if the group has nothing to do with one of them."""
    places = await reset.partitions(session.values.all("input-topic"))
    await reset.check(places)
    with told_as(KIND.failed + WRAPPED):
        known = await committed(session.cluster, group_id)
    if all(place in known for place in places):
        return places
    session.report.note(f"\nError: One or more topics are not part of the group '{group_id}'.")
    return None


async def _forget_state(session: Session, group_id: str) -> int:
    """Delete the application's own topics if that was asked for, so that it begins anew."""
    values = session.values
    topics: list[str] = values.all("delete-internal-topic")
    if values.has("delete-all-internal-topics"):
        topics = await _internal_topics(session, group_id)
    failed: dict[str, Any] = await delete_topics(session.cluster, topics) if topics else {}
    for error in list(failed.values())[:1]:
        about = f"\nError: Deleting internal topics for group '{group_id}' failed"
        session.report.note(
            f"{about} because the topics do not exist."
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else f"{about} due to {exception(error.code, error.message)}"
        )
        print(f"Not deleted: {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


_ACTIONS = {
    "list": KIND.list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset,
    "delete-offsets": _delete_offsets,
}
