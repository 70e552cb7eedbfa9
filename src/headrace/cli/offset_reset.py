"""Where the offsets of a group shall stand: Kafka's scenarios, for consumer groups and share groups.

A scenario only plans; who asked for it decides whether the plan is carried out.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.cli.columns import BARE, columns, fixed, least
from headrace.cli.java_order import hash_order, partition_order
from headrace.cli.java_time import NoTime, parse_date_time, parse_duration_ms
from headrace.cli.java_words import exception
from headrace.cli.log_offsets import EARLIEST, LATEST, NO_LEADER, leaders, log_offsets
from headrace.cli.session import Failure
from headrace.cli.tool import UsageError
from headrace.client.offset_targets import INACTIVE as INACTIVE
from headrace.client.offset_targets import NothingCommitted, NothingSoLate, OffsetTargets, OutOfRange
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

    from headrace.cli.columns import Width
    from headrace.cli.group_queries import Commit
    from headrace.cli.report import Report
    from headrace.cli.session import Session

    Place = tuple[str, int]
    Plan = dict[Place, int]

WRAPPED = "java.util.concurrent.ExecutionException: "


@contextmanager
def told_as(prefix: str) -> Iterator[None]:
    """Word an error of the broker as Java prints the exception, after `prefix`."""
    try:
        yield
    except KafkaError as error:
        raise Failure(prefix + exception(error.code, error.message), on_stdout=True, remedy=remedy(error)) from error


def remedy(error: KafkaError) -> str:
    """What to do about an error that tools for groups meet."""
    return _REMEDIES.get(error.code, "")


_REMEDIES = {
    ErrorCode.GROUP_ID_NOT_FOUND: "Is the name right? --list shows the groups there are.",
    ErrorCode.NON_EMPTY_GROUP: "Stop the group's members first, then try again.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Is the name right? kafka-topics --list shows the topics there are.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Ask an administrator for access to the group.",
}


class Reset:
    """One run of --reset-offsets: what was typed and whom to ask."""

    def __init__(self, session: Session, failed: str) -> None:
        """`failed` begins the sentence in which Kafka's tool says that it failed."""
        self.values = session.values
        self.cluster = session.cluster
        self.report = session.report
        self.failed = failed
        self._targets = OffsetTargets(self.ends, self._tell)

    async def partitions(self, topics: Sequence[str]) -> list[Place]:
        """The partitions of `--topic t` and `--topic t:0,1` arguments."""
        listed = [place for topic in topics if ":" in topic for place in parse_partitions(topic)]
        whole = [topic for topic in topics if ":" not in topic]
        found = await leaders(self.cluster, whole)
        return [*listed, *(place for topic in hash_order(whole) for place in found if place[0] == topic)]

    async def check(self, places: Collection[Place]) -> None:
        """Refuse partitions that do not exist or that nobody leads."""
        with told_as(self.failed + WRAPPED):
            found = await leaders(self.cluster, (topic for topic, _ in places))
        absent = [place for place in places if place not in found]
        if absent:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'The partitions "{_names(absent)}" do not exist')
        leaderless = [place for place in places if found[place] == NO_LEADER]
        if leaderless:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f'The partitions "{_names(leaderless)}" have no leader')

    async def ends(self, places: Collection[Place], when: int) -> Plan:
        """Where the logs begin or end, in the order of a Java map."""
        with told_as(self.failed + WRAPPED):
            found = await log_offsets(self.cluster, places, when)
        return {place: found[place] for place in partition_order(places)}

    def _number(self, name: str) -> int:
        """An option's number; one that is none is refused as late as by Kafka's tool, and in its words."""
        try:
            return self.values.number(name) or 0
        except UsageError as error:
            raise Failure(f"{self.failed}{error}", on_stdout=True) from None

    # --- scenarios

    async def to_offset(self, places: Collection[Place], _: Mapping[Place, Commit]) -> Plan:
        """All to one offset."""
        return await self._targets.to_offset(partition_order(places), self._number("to-offset"))

    async def to_earliest(self, places: Collection[Place], _: Mapping[Place, Commit]) -> Plan:
        """To where the logs begin."""
        return await self.ends(places, EARLIEST)

    async def to_latest(self, places: Collection[Place], _: Mapping[Place, Commit]) -> Plan:
        """To where the logs end."""
        return await self.ends(places, LATEST)

    async def shift_by(self, places: Collection[Place], current: Mapping[Place, Commit]) -> Plan:
        """Forward or back by so many records."""
        for place in places:
            if place not in current:
                raise UsageError(str(NothingCommitted(place)))
        shift = self._number("shift-by")
        return await self._targets.shift_by(partition_order(places), _offsets(current), shift)

    async def to_datetime(self, places: Collection[Place], _: Mapping[Place, Commit]) -> Plan:
        """To the first record at or after a point in time."""
        with self._reading_time():
            when = parse_date_time(self.values.require("to-datetime"))
        return await self._targets.at_time(partition_order(places), when)

    async def by_duration(self, places: Collection[Place], _: Mapping[Place, Commit]) -> Plan:
        """To the first record that is no older than a duration."""
        with self._reading_time():
            ago_ms = parse_duration_ms(self.values.require("by-duration"))
        return await self._targets.at_time(partition_order(places), time.time_ns() // 1_000_000 - ago_ms)

    async def to_current(self, places: Collection[Place], current: Mapping[Place, Commit]) -> Plan:
        """To where they are; to the end where nothing was committed."""
        return await self._targets.to_current(partition_order(places), _offsets(current))

    # --- a plan for a group

    async def planned(
        self, group_id: str, places: Collection[Place], current: Callable[[], Awaitable[Mapping[Place, Commit]]]
    ) -> Plan | None:
        """Where the group shall stand; None if the file has no plan for it."""
        if self.values.has("from-file"):
            wanted = self._plans_in_file(self.values.require("from-file")).get(group_id)
            if wanted is None:
                self.report.note(f"\nError: No reset plan for group {group_id} found")
                return None
            return await self._targets.within_range({place: wanted[place] for place in partition_order(wanted)})
        name = next((name for name in SCENARIOS if self.values.has(name)), None)
        if name is None:
            listed = ", ".join(f"[{name}]" for name in SCENARIO_NAMES)
            raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")
        commits: Mapping[Place, Commit] = {}
        if name in _RELATIVE:
            with told_as(self.failed + WRAPPED):
                commits = await current()
        return await SCENARIOS[name](self, places, commits)

    def _plans_in_file(self, path: str) -> dict[str, Plan]:
        from pathlib import Path

        from headrace.cli.offset_plan import BadPlan, read_plan

        groups = self.values.all("group")
        try:
            return read_plan(Path(path).read_text(encoding="utf-8"), groups[0] if len(groups) == 1 else None)
        except OSError as error:
            message = f"{self.failed}java.io.IOException: Unable to read file {path}"
            raise Failure(message, on_stdout=True, remedy=f"{error.strerror}.") from None
        except (BadPlan, UnicodeDecodeError) as error:
            message = f"{self.failed}{path}: {error}"
            raise Failure(message, on_stdout=True, remedy="--export writes such a file; look at one.") from None

    def refuse(self, group_id: str, state: str) -> Plan | None:
        """Say that the group is in use, so that there is no plan."""
        self.report.note(
            f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, "
            f"but the current state is {state}."
        )
        print("Stop the group's members first, then try again.", file=sys.stderr)
        return None

    def finish(self, plans: Mapping[str, Plan], widths: Sequence[Width] = ()) -> None:
        """Print the plans, as a table or as CSV."""
        if self.values.has("export") and self.report.is_text:
            from headrace.cli.offset_plan import write_plan

            print(write_plan(plans, with_group=len(self.values.all("group")) != 1))
        else:
            print_plans(self.report, plans, widths)

    # --- parts of scenarios

    @contextmanager
    def _reading_time(self) -> Iterator[None]:
        try:
            yield
        except NoTime as error:
            raise Failure(
                self.failed + str(error),
                on_stdout=True,
                remedy="Write a time as 2026-01-31T12:00:00.000 (UTC), a duration as P1DT2H30M.",
            ) from None

    def _tell(self, noticed: OutOfRange | NothingSoLate) -> None:
        topic, index = noticed.place
        if isinstance(noticed, NothingSoLate):
            self.report.note(
                f"\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known offset."
            )
            return
        side = "higher than latest" if noticed.offset < noticed.wanted else "lower than earliest"
        print(
            f"New offset ({noticed.wanted}) is {side} offset for topic partition {topic}-{index}. "
            f"Value will be set to {noticed.offset}",
            file=sys.stderr,
        )


SCENARIOS: dict[str, Callable[[Reset, Collection[Place], Mapping[Place, Commit]], Awaitable[Plan]]] = {
    "to-offset": Reset.to_offset,
    "to-earliest": Reset.to_earliest,
    "to-latest": Reset.to_latest,
    "shift-by": Reset.shift_by,
    "to-datetime": Reset.to_datetime,
    "by-duration": Reset.by_duration,
    "to-current": Reset.to_current,
}
"""By option; --from-file is a plan already."""

SCENARIO_NAMES = (*SCENARIOS, "from-file")
_RELATIVE = frozenset({"shift-by", "to-current"})


def _offsets(current: Mapping[Place, Commit]) -> Plan:
    return {place: commit.offset for place, commit in current.items()}


def parse_partitions(text: str) -> list[Place]:
    """The partitions of `topic:0,1,2`; UsageError in Kafka's words if it is something else."""
    parts = text.rstrip(":").split(":")
    if len(parts) != 2:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for number in parts[1].split(","):
        try:
            found.append((parts[0], int(number)))
        except ValueError:
            raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''") from None
    return found


def print_plans(report: Report, plans: Mapping[str, Plan], widths: Sequence[Width] = ()) -> None:
    """The table that both a dry run and an execution end in."""
    rows: list[list[object]] = [
        [group_id, topic, index, offset] for group_id, plan in plans.items() for (topic, index), offset in plan.items()
    ]
    heading = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    longest = max((len(group_id) for group_id in plans), default=0)
    report.line()
    if plans:
        for line in columns([heading, *rows], widths or [least(max(15, longest)), least(15), fixed(10), BARE]):
            report.line(line)
    names = ("group", "topic", "partition", "newOffset")
    report.data([dict(zip(names, row, strict=True)) for row in rows])


def _names(places: Collection[Place]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in places)
