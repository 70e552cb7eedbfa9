"""Tools that are told what to do by a word: `kafka-cluster cluster-id …`, `kafka-features … describe`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import COMMON_OPTIONS, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from headrace.cli.session import Session
    from headrace.cli.tool import Tool, Values

_TOO_FEW = "too few arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a tool does at a word, with the options that only then make sense."""

    work: Callable[[Session], Awaitable[int]]
    options: Sequence[str] = ()
    required: Sequence[str] = ()
    help: str = ""


def run_commands(
    tool: Tool,
    commands: Mapping[str, Command],
    arguments: Sequence[str],
    program: str,
    *,
    short: Mapping[str, str] | None = None,
    help_is_success: bool = False,
    refused: str = "",
) -> int:
    """Run the command that was typed; `short` are the one-letter names of options.

    `refused` is the sentence around what is wrong with it, where Kafka's tool has one instead of its usage.
    """
    expanded = [_expand(word, short or {}) for word in arguments]
    if help_is_success and any(word in {"--help", "-h"} for word in expanded):
        from headrace.cli.usage import usage

        print(tool.summary)
        print(usage(tool, program), end="")
        return 0

    def check(values: Values) -> None:
        try:
            _check(commands, values)
        except UsageError as error:
            if refused:
                raise Failure(refused.format(error)) from error
            raise UsageError(f"{tool.name}: error: {error}") from error

    async def work(session: Session) -> int:
        return await commands[session.values.words[0]].work(session)

    if not expanded and refused:
        print(refused.format(_TOO_FEW), file=sys.stderr)
        return 1
    if not expanded:
        print(f"{tool.name}: error: {_TOO_FEW}", file=sys.stderr)
        expanded = ["--help"]
    return run_tool(tool, expanded, program, work, check=check)


def _expand(word: str, short: Mapping[str, str]) -> str:
    name, sign, value = word.partition("=")
    return short.get(name, name) + sign + value


def _check(commands: Mapping[str, Command], values: Values) -> None:
    if not values.words:
        raise UsageError(_TOO_FEW)
    word, *rest = values.words
    if word not in commands:
        choices = ", ".join(f"'{name}'" for name in commands)
        raise UsageError(f"invalid choice: '{word}' (choose from {choices})")
    if rest:
        raise UsageError(f"unrecognized arguments: '{' '.join(rest)}'")
    special = {name for command in commands.values() for name in command.options}
    allowed = {*commands[word].options, *(option.name for option in COMMON_OPTIONS)}
    for name in values.given:
        if name in special and name not in allowed:
            raise UsageError(f"unrecognized arguments: '--{name}'")
    for name in commands[word].required:
        if not values.has(name):
            raise UsageError(f"argument --{name} is required")
