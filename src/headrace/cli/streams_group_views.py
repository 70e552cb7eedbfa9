"""What kafka-streams-groups --describe shows: offsets with their lag, members with their tasks, or states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.columns import BARE, columns, fixed, least
from headrace.cli.group_queries import committed, coordinator
from headrace.cli.java_order import partition_order, result_order
from headrace.cli.log_offsets import EARLIEST, LATEST, log_offsets
from headrace.cli.streams_group_queries import active_places, source_topics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.columns import Width
    from headrace.cli.session import Session
    from headrace.wire.messages.streams_group_describe import Assignment, DescribedGroup, Member

_KINDS = {"ACTIVE": "active_tasks", "STANDBY": "standby_tasks", "WARMUP": "warmup_tasks"}
_EPOCH_WIDTH = 15


def _print(session: Session, heading: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[Width]) -> None:
    for line in columns([heading, *rows], widths):
        session.report.line(line)


# --- offsets


async def show_offsets(session: Session, groups: Mapping[str, DescribedGroup]) -> None:
    """Each partition that an active task reads, with how far it is behind."""
    documents = []
    for group in groups.values():
        rows = await _offset_rows(session, group)
        documents += rows
        if group.group_state == "Dead" or not group.members:
            continue
        if session.values.has("verbose"):
            _print(
                session,
                ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"],
                [list(row.values()) for row in rows],
                [least(max(15, len(group.group_id))), least(15), fixed(10), *[fixed(15)] * 4],
            )
        else:
            short = [[row["group"], row["topic"], row["partition"], row["lag"]] for row in rows]
            widths = [least(max(15, len(group.group_id))), least(15), fixed(10), BARE]
            _print(session, ["GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"], short, widths)
    session.report.data(documents)


async def _offset_rows(session: Session, group: DescribedGroup) -> list[dict[str, Any]]:
    places = partition_order(result_order(active_places(group)))
    first = await log_offsets(session.cluster, places, EARLIEST)
    last = await log_offsets(session.cluster, places, LATEST)
    topics = source_topics(group)
    found = await committed(session.cluster, group.group_id)
    commits = {place: commit for place, commit in found.items() if place[0] in topics}
    rows = []
    for place in places:
        commit = commits.get(place)
        rows.append(
            {
                "group": group.group_id,
                "topic": place[0],
                "partition": place[1],
                "currentOffset": None if commit is None else commit.offset,
                "leaderEpoch": None if commit is None else commit.leader_epoch,
                "logEndOffset": last[place],
                "lag": last[place] - (first[place] if commit is None else commit.offset),
            }
        )
    return rows


# --- members


def show_members(session: Session, groups: Mapping[str, DescribedGroup]) -> None:
    """Who is in each group, and the tasks they have."""
    for group in groups.values():
        if group.group_state != "Dead" and group.members:
            (_print_members_at_length if session.values.has("verbose") else _print_members)(session, group)
    session.report.data(
        [
            {
                "group": group.group_id,
                "state": group.group_state,
                "members": [_member_data(member) for member in group.members],
            }
            for group in groups.values()
        ]
    )


def _print_members(session: Session, group: DescribedGroup) -> None:
    rows = [
        [group.group_id, member.member_id, member.process_id, member.client_id, _tasks_text(member.assignment)]
        for member in group.members
    ]
    heading = ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    _print(session, heading, rows, [least(15), least(15), least(15), least(15), BARE])


def _print_members_at_length(session: Session, group: DescribedGroup) -> None:
    epoch = 0 if group.topology is None else group.topology.epoch
    rows = [
        [
            group.group_id,
            group.assignment_epoch,
            # Kafka's tool leaves no blank between these two columns.
            f"{epoch:<{_EPOCH_WIDTH}}{member.member_id}",
            "classic" if member.is_classic else "streams",
            member.member_epoch,
            member.process_id,
            member.client_id,
            _tasks_text(member.assignment) + _tasks_text(member.target_assignment, "TARGET-"),
        ]
        for member in group.members
    ]
    heading = [
        "GROUP",
        "TARGET-ASSIGNMENT-EPOCH",
        f"{'TOPOLOGY-EPOCH':<{_EPOCH_WIDTH}}MEMBER",
        "MEMBER-PROTOCOL",
        "MEMBER-EPOCH",
        "PROCESS",
        "CLIENT-ID",
        "ASSIGNMENTS",
    ]
    widths = [least(15), fixed(25), least(_EPOCH_WIDTH + 15), fixed(15), fixed(15), least(15), least(15), BARE]
    _print(session, heading, rows, widths)


def _tasks_text(assignment: Assignment, prefix: str = "") -> str:
    """Tasks as `ACTIVE: 0:[0,1]; 1:[2]; `."""
    text = ""
    for kind, tasks in _KINDS.items():
        listed = "".join(
            f"{task.subtopology_id}:[{','.join(map(str, task.partitions))}]; " for task in getattr(assignment, tasks)
        )
        text += f"{prefix}{kind}: {listed}" if listed else ""
    return text


def _member_data(member: Member) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "process": member.process_id,
        "clientId": member.client_id,
        "protocol": "classic" if member.is_classic else "streams",
        "memberEpoch": member.member_epoch,
        "assignment": _tasks_data(member.assignment),
        "targetAssignment": _tasks_data(member.target_assignment),
    }


def _tasks_data(assignment: Assignment) -> dict[str, dict[str, list[int]]]:
    return {
        kind.lower(): {task.subtopology_id: list(task.partitions) for task in getattr(assignment, tasks)}
        for kind, tasks in _KINDS.items()
    }


# --- state


async def show_states(session: Session, groups: Mapping[str, DescribedGroup]) -> None:
    """Who coordinates each group, and how far it is."""
    documents = []
    for group in groups.values():
        if group.group_state in _SAID:
            session.report.note(f"\nError: Streams group '{group.group_id}' {_SAID[group.group_state]}")
        node = await coordinator(session.cluster, group.group_id)
        heading: list[str] = ["GROUP", "COORDINATOR (ID)", "STATE"]
        row: list[object] = [group.group_id, f"{node.host}:{node.port} ({node.node_id})", group.group_state]
        widths = [least(15), least(25), fixed(25)]
        if session.values.has("verbose"):
            heading += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
            row += [group.group_epoch, group.assignment_epoch]
            widths += [fixed(15), fixed(25)]
        _print(session, [*heading, "#MEMBERS"], [[*row, len(group.members)]], [*widths, BARE])
        documents.append(
            {
                "group": group.group_id,
                "coordinator": {"id": node.node_id, "host": node.host, "port": node.port},
                "state": group.group_state,
                "groupEpoch": group.group_epoch,
                "targetAssignmentEpoch": group.assignment_epoch,
                "members": len(group.members),
            }
        )
    session.report.data(documents)


_SAID = {"Dead": "does not exist.", "Empty": "has no active members."}
