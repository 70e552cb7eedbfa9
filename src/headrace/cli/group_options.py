"""Which options of the tools for groups go together, and what Kafka's tools say about those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.group_queries import parse_name
from headrace.cli.tool import UsageError, not_together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.tool import Values

VIEWS = ("members", "offsets", "state")
"""What --describe can show."""

ONLY_WITH = {
    "members": ("describe",),
    "offsets": ("describe",),
    "verbose": ("describe",),
    "state": ("describe", "list"),
}
"""The actions that options need."""


def check_only_with(values: Values, actions_of: Mapping[str, Sequence[str]]) -> None:
    """Refuse options without an action that knows them."""
    for name, actions in actions_of.items():
        if values.has(name) and not any(values.has(action) for action in actions):
            raise UsageError(f"Option(s) [{name}] are unavailable given other options on the command line")


def need_groups(values: Values, action: str) -> None:
    """Refuse an action without the groups it is for."""
    if not values.has("group") and not values.has("all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")


def check_describe(values: Values) -> None:
    """Refuse --describe without groups, with several views, or with states."""
    need_groups(values, "describe")
    if sum(values.has(view) for view in VIEWS) > 1:
        raise UsageError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if values.get("state") is not None:
        raise UsageError("Option [describe] does not take a value for [state]")


def one_scenario(values: Values, names: Sequence[str]) -> None:
    """Refuse several ways at once to move offsets."""
    for name in names:
        not_together(values, name, [other for other in names if other != name])


def not_both_modes(values: Values) -> None:
    """Refuse to both move offsets and not move them."""
    if values.has("dry-run") and values.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")


def need_mode(values: Values) -> None:
    """Refuse to guess whether offsets shall be moved."""
    if not values.has("dry-run") and not values.has("execute"):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")


def chosen(values: Values, option: str, names: Sequence[str], word: str) -> list[str]:
    """The states or types that --list was given, by their right names."""
    text = values.get(option) or ""
    found = [parse_name(part, names) for part in text.split(",")] if text else []
    if None in found:
        raise UsageError(f"Invalid {word} list '{text}'. Valid {word.rstrip('s')}s are: {', '.join(names)}")
    return [name for name in found if name is not None]
