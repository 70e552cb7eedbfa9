"""A short way to type one of Kafka's tools: words instead of options, one-letter options, colours on a terminal.

A front only translates: `headrace topics create orders -p 3` becomes `kafka-topics --create --topic orders
--partitions 3`. Every option of the tool works beside the short ones. Where nobody says which cluster is meant, it is
the profile's, or else the broker on localhost:9092.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.cli.colours import PaintedStream, wants_colour
from headrace.cli.main import TOOLS, run
from headrace.cli.profile import load_profile
from headrace.cli.tool import UsageError
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.cli.colours import Rule

USUAL = "localhost:9092"
_PLACES = ("bootstrap-server", "profile", "zookeeper", "broker-list")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing a front does."""

    usage: str
    help: str
    translate: Callable[[list[str]], list[str]]
    """From the words that belong to no option to the tool's options; UsageError if they do not fit."""
    after: Callable[[list[str]], str] | None = None
    """What to say when it succeeded, where the tool itself says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A command of the umbrella over a tool."""

    name: str
    tool: str
    summary: str
    verbs: dict[str, Verb]
    """By name; under the empty name what is done where no verb is typed."""
    short: dict[str, str] = field(default_factory=dict)
    """One-letter options and what they stand for."""
    rules: Sequence[Rule] = ()


def run_front(front: Front, arguments: Sequence[str]) -> int:
    """Translate what was typed and run the tool with it."""
    if any(word in {"--help", "-h", "help"} for word in arguments[:2]):
        print(help_text(front), end="")
        return 0
    try:
        verb, words, options = split(front, arguments)
        translated = [*verb.translate(words), *options]
    except UsageError as error:
        print(f"headrace {front.name}: {error}", file=sys.stderr)
        print(f"`headrace {front.name} --help` shows what can be typed.", file=sys.stderr)
        return 1
    code = run_tool_of(front, [*translated, *_place(options)])
    if code == 0 and verb.after is not None and is_text(options):
        print(verb.after(words))
    return code


def run_tool_of(front: Front, arguments: Sequence[str]) -> int:
    """Run the tool, its text coloured where a person looks at it."""
    with painted(front.rules) if is_text(arguments) else nullcontext():
        return run(TOOLS[front.tool], arguments, program=f"headrace {front.name}")


def painted(rules: Sequence[Rule]) -> Any:
    """Colour what is printed from here on, if it goes to a terminal."""
    if not rules or not wants_colour(sys.stdout):
        return nullcontext()
    return redirect_stdout(PaintedStream(sys.stdout, rules))


def split(front: Front, arguments: Sequence[str]) -> tuple[Verb, list[str], list[str]]:
    """The verb, the words, and the options with their values under the tool's names."""
    from importlib import import_module

    tool = import_module(TOOLS[front.tool]).TOOL
    words: list[str] = []
    options: list[str] = []
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            words += remaining
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, sign, _ = word.lstrip("-").partition("=")
        name = front.short.get(name, name) if not word.startswith("--") else name
        option = tool.find(name)
        options.append(f"--{name}" + word[word.index("=") :] if sign else f"--{name}")
        # An option nobody knows is left for the tool to refuse, in its words.
        if option is not None and option.argument and not sign and remaining:
            options.append(remaining.pop(0))
    if words and words[0] in front.verbs:
        return front.verbs[words[0]], words[1:], options
    if "" in front.verbs:
        return front.verbs[""], words, options
    raise UsageError(f"'{words[0]}' is none of {', '.join(front.verbs)}" if words else "something is missing")


def is_text(arguments: Sequence[str]) -> bool:
    """Whether the result is for people."""
    if "--output" in arguments:
        return arguments[arguments.index("--output") + 1 :][:1] == ["text"]
    return not any(word.startswith("--output=") and word != "--output=text" for word in arguments)


def _place(options: Sequence[str]) -> list[str]:
    """Where the cluster is, if neither the options nor a profile say it."""
    names = {option.removeprefix("--").partition("=")[0] for option in options if option.startswith("--")}
    try:
        if names.isdisjoint(_PLACES) and not load_profile(None):
            return ["--bootstrap-server", USUAL]
    except HeadraceError:
        pass  # The tool says it.
    return []


# --- words


def no_words(options: Sequence[str]) -> Callable[[list[str]], list[str]]:
    """A verb that stands alone."""

    def translate(words: list[str]) -> list[str]:
        if words:
            raise UsageError(f"'{words[0]}' is one word too many")
        return list(options)

    return translate


def one_word(
    options: Sequence[str], option: str, what: str, *, optional: bool = False
) -> Callable[[list[str]], list[str]]:
    """A verb with one word, the value of an option."""

    def translate(words: list[str]) -> list[str]:
        if len(words) > 1:
            raise UsageError(f"'{words[1]}' is one word too many")
        if not words and not optional:
            raise UsageError(f"the name of {what} is missing")
        return [*options, *(part for word in words for part in (option, word))]

    return translate


# --- help


def help_text(front: Front) -> str:
    """What can be typed."""
    verbs = [(f"headrace {front.name} {verb.usage}".rstrip(), verb.help) for verb in front.verbs.values()]
    width = max(len(left) for left, _ in verbs)
    lines = [front.summary, "", *(f"  {left:<{width}}  {right}" for left, right in verbs), ""]
    if front.short:
        lines += [*(f"  -{short}  --{name}" for short, name in front.short.items()), ""]
    lines.append(f"Every option of {front.tool} works too; `{front.tool} --help` lists them.")
    return "\n".join(lines) + "\n"
