"""Plans of offsets as CSV files, written by --export and read by --from-file.

A plan for one group has the columns topic, partition, offset; one for several has the group before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    Plan = dict[tuple[str, int], int]

_QUOTED_FROM = 24
_SAFE_FIRST = "-"
_COLUMNS_OF_ONE, _COLUMNS_OF_SEVERAL = 3, 4


class BadPlan(ValueError):
    """A file that is no plan; the message says which line."""


def write_plan(plans: Mapping[str, Plan], *, with_group: bool) -> str:
    """The plans as CSV, a line each."""
    return "".join(
        ",".join([*([_field(group_id)] if with_group else []), _field(topic), str(index), str(offset)]) + "\n"
        for group_id, plan in plans.items()
        for (topic, index), offset in plan.items()
    )


def _field(text: str) -> str:
    """A text as Kafka's CSV writer puts it: in quotes if it is long or has anything in it that sorts before a dash."""
    if len(text) > _QUOTED_FROM or any(character < _SAFE_FIRST for character in text):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def read_plan(text: str, only_group: str | None) -> dict[str, Plan]:
    """The plans by group; `only_group` is the one that was asked for, if it was one."""
    import csv

    lines = [line for line in text.splitlines() if line.strip()]
    plans: dict[str, Plan] = {}
    for number, fields in enumerate(csv.reader(lines), start=1):
        group_id = fields[0] if len(fields) == _COLUMNS_OF_SEVERAL else only_group
        if group_id is None or len(fields) not in {_COLUMNS_OF_ONE, _COLUMNS_OF_SEVERAL}:
            raise BadPlan(f"line {number} is not [group,]topic,partition,offset: {lines[number - 1]}")
        topic, index, offset = fields[-_COLUMNS_OF_ONE:]
        try:
            plans.setdefault(group_id, {})[topic, int(index)] = int(offset)
        except ValueError:
            raise BadPlan(f"line {number} has no number where one should be: {lines[number - 1]}") from None
    return plans
