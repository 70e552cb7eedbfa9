"""What kafka-consumer-groups --describe shows: offsets with their lag, members, or the state of groups."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.columns import BARE, columns, fixed, least
from headrace.cli.group_queries import by_topic, committed, for_each
from headrace.cli.log_offsets import LATEST, NO_LEADER, leaders, log_offsets
from headrace.cli.offset_reset import WRAPPED, told_as
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.columns import Width
    from headrace.cli.group_queries import Commit, GroupView, MemberView
    from headrace.cli.session import Session

    Place = tuple[str, int]

FAILED = "\nError: Executing consumer group command failed due to "
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})

OFFSET_COLUMNS: dict[str, tuple[str, Width]] = {
    "group": ("GROUP", least(15)),
    "topic": ("TOPIC", least(15)),
    "partition": ("PARTITION", fixed(10)),
    "leaderEpoch": ("LEADER-EPOCH", fixed(15)),
    "currentOffset": ("CURRENT-OFFSET", fixed(15)),
    "logEndOffset": ("LOG-END-OFFSET", fixed(15)),
    "lag": ("LAG", fixed(15)),
    "consumerId": ("CONSUMER-ID", least(15)),
    "host": ("HOST", least(15)),
    "clientId": ("CLIENT-ID", BARE),
}
"""By the name for programs: the heading and the width."""


def _is_shown(session: Session, group: GroupView) -> bool:
    """Say what Kafka's tool says about the group's state; whether there is anything to show."""
    if group.state == "Dead":
        session.report.note(f"\nError: Consumer group '{group.group_id}' does not exist.")
        return False
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    elif group.state != "Stable":
        raise Failure(f"{FAILED}Expected a valid consumer group state, but found '{group.state}'.", on_stdout=True)
    return True


def _exit_code(groups: Mapping[str, GroupView]) -> int:
    return int(any(group.state == "Dead" for group in groups.values()))


def _print(session: Session, lines: Sequence[str]) -> None:
    session.report.line()
    for line in lines:
        session.report.line(line)


# --- offsets


async def show_offsets(session: Session, groups: Mapping[str, GroupView]) -> int:
    """Each partition with what is committed, where it ends and who reads it."""
    rows = await for_each(groups, lambda group_id: _offset_rows(session, groups[group_id]))
    is_verbose = session.values.has("verbose")
    names = [name for name in OFFSET_COLUMNS if is_verbose or name != "leaderEpoch"]
    for group_id, group in groups.items():
        if _is_shown(session, group) and rows[group_id]:
            table = [[OFFSET_COLUMNS[name][0] for name in names]]
            table += [[row[name] for name in names] for row in rows[group_id]]
            _print(session, columns(table, [OFFSET_COLUMNS[name][1] for name in names]))
    session.report.data(
        [
            {"group": group_id, "state": group.state, "offsets": [_without_group(row) for row in rows[group_id]]}
            for group_id, group in groups.items()
        ]
    )
    return _exit_code(groups)


def _without_group(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == "-" else value for name, value in row.items() if name != "group"}


async def _offset_rows(session: Session, group: GroupView) -> list[dict[str, Any]]:
    """The rows of a group: those of members first, the member with the most partitions before the others."""
    with told_as(FAILED + WRAPPED):
        commits = await committed(session.cluster, group.group_id)
        members = sorted((one for one in group.members if one.assignment), key=lambda one: -len(one.assignment))
        assigned = {place for member in members for place in member.assignment}
        places = assigned | commits.keys()
        led = await leaders(session.cluster, (topic for topic, _ in places))
        ends = await log_offsets(
            session.cluster, [place for place in places if led.get(place, NO_LEADER) != NO_LEADER], LATEST
        )
    rows = []
    for member in members:
        reader = {"consumerId": member.member_id, "host": member.host, "clientId": member.client_id}
        rows += [_offset_row(group, place, commits, ends, reader) for place in sorted(set(member.assignment))]
    nobody = dict.fromkeys(("consumerId", "host", "clientId"), "-")
    rows += [_offset_row(group, place, commits, ends, nobody) for place in sorted(commits.keys() - assigned)]
    return rows


def _offset_row(
    group: GroupView,
    place: Place,
    commits: Mapping[Place, Commit],
    ends: Mapping[Place, int],
    reader: dict[str, str],
) -> dict[str, Any]:
    commit, end = commits.get(place), ends.get(place)
    return {
        "group": group.group_id,
        "topic": place[0],
        "partition": place[1],
        "leaderEpoch": None if commit is None else commit.leader_epoch,
        "currentOffset": None if commit is None else commit.offset,
        "logEndOffset": end,
        "lag": None if commit is None or end is None else end - commit.offset,
        **reader,
    }


# --- members


def show_members(session: Session, groups: Mapping[str, GroupView]) -> int:
    """Who is in each group, and with --verbose what they have and shall have."""
    for group in groups.values():
        is_shown = _is_shown(session, group)
        _print(session, _member_lines(group, group.members if is_shown else (), session.values.has("verbose")))
    session.report.data(
        [
            {
                "group": group.group_id,
                "state": group.state,
                "members": [_member_data(group, member) for member in group.members],
            }
            for group in groups.values()
        ]
    )
    return _exit_code(groups)


def _member_lines(group: GroupView, members: Sequence[MemberView], is_verbose: bool) -> list[str]:
    """The table: a blank stands after the number of partitions, whatever follows."""
    is_static = any(member.instance_id for member in members)
    is_mixed = {True, False} <= {member.is_upgraded for member in members}
    heading: list[object] = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [least(15), least(15), least(17), least(15), least(15), fixed(15)]
    heading += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]
    widths += [fixed(15), least(20), fixed(15), least(20), BARE]
    table = [heading, *(_member_row(group, member) for member in members)]
    shown = [place for place in range(6) if is_static or place != 2]
    if is_verbose:
        shown += range(6, 11 if is_mixed else 10)
    lines = columns([[row[place] for place in shown] for row in table], [widths[place] for place in shown])
    return lines if is_verbose else [f"{line} " for line in lines]


def _member_row(group: GroupView, member: MemberView) -> list[object]:
    return [
        group.group_id,
        member.member_id,
        member.instance_id or "",
        member.host,
        member.client_id,
        len(set(member.assignment)),
        member.epoch,
        assignment_text(member.assignment) or None,
        group.assignment_epoch,
        assignment_text(member.target) or None,
        None if member.is_upgraded is None else str(member.is_upgraded).lower(),
    ]


def _member_data(group: GroupView, member: MemberView) -> dict[str, Any]:
    return {
        "consumerId": member.member_id,
        "groupInstanceId": member.instance_id,
        "host": member.host,
        "clientId": member.client_id,
        "assignment": by_topic(sorted(member.assignment)),
        "targetAssignment": by_topic(sorted(member.target)),
        "currentEpoch": member.epoch,
        "targetEpoch": group.assignment_epoch,
        "upgraded": member.is_upgraded,
    }


def assignment_text(places: Sequence[Place]) -> str:
    """Partitions as `topic:0,1;other:2`."""
    return ";".join(
        sorted(f"{topic}:{','.join(map(str, sorted(set(indexes))))}" for topic, indexes in by_topic(places).items())
    )


# --- state


def show_states(session: Session, groups: Mapping[str, GroupView]) -> int:
    """Who coordinates each group, and how far it is."""
    for group in groups.values():
        if _is_shown(session, group):
            _print(session, _state_lines(group, session.values.has("verbose")))
    session.report.data([_state_data(group) for group in groups.values()])
    return _exit_code(groups)


def _state_lines(group: GroupView, is_verbose: bool) -> list[str]:
    heading: list[object] = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row: list[object] = [group.group_id, group.coordinator, group.assignor or None, group.state]
    widths = [least(15), least(25), fixed(20), fixed(20)]
    if is_verbose:
        heading += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [group.epoch, group.assignment_epoch]
        widths += [fixed(15), fixed(25)]
    return columns([[*heading, "#MEMBERS"], [*row, len(group.members)]], [*widths, BARE])


def _state_data(group: GroupView) -> dict[str, Any]:
    node = group.coordinator
    return {
        "group": group.group_id,
        "coordinator": {"id": node.node_id, "host": node.host, "port": node.port},
        "assignmentStrategy": group.assignor or None,
        "state": group.state,
        "groupEpoch": group.epoch,
        "targetAssignmentEpoch": group.assignment_epoch,
        "members": len(group.members),
    }
