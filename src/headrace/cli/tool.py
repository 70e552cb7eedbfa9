"""A command-line tool as Kafka's users know it: options by their long names only, read in Kafka's manner.

A tool is a table of options. What is typed is held against it here, with the refusals that Kafka's tools print; every
tool also has --help, --version, --output and -v without listing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a tool."""

    name: str
    help: str
    argument: str = ""
    """What stands for the argument in the help; empty for a flag."""
    is_argument_optional: bool = False
    default: str | None = None
    choices: Sequence[str] = ()
    is_repeatable: bool = False
    takes_many: bool = False
    """Whether all words up to the next option belong to it."""
    replaced_by: str = ""
    """The name Kafka has given it since; the old one works, with Kafka's warning."""
    warning: str = ""
    """Kafka's warning where this tool words it in its own way."""
    conflict: str = ""
    """Kafka's refusal of the old name together with the new one, where this tool words it in its own way."""
    is_hidden: bool = False
    """Works, but is not shown: an old or misspelt name that people still type."""
    short: str = ""
    """Another name of one letter; only Headrace's own commands have such."""


OUTPUT_FORMATS = ("text", "json", "yaml")

COMMON_OPTIONS = (
    Option(name="help", help="Print usage information."),
    Option(name="version", help="Display the version of Headrace, and of Kafka whose tool this is."),
    Option(
        name="output",
        argument="text|json|yaml",
        default="text",
        choices=OUTPUT_FORMATS,
        help="How to print results: as Kafka does, or for programs.",
    ),
    Option(name="profile", argument="name", help="The saved cluster to talk to, instead of --bootstrap-server."),
    Option(name="v", help="Print tracebacks of errors.", is_hidden=True),
    Option(name="verbose-errors", help="Print tracebacks of errors.", is_hidden=True),
)

BOOTSTRAP = Option(
    name="bootstrap-server",
    argument="host:port,...",
    help="The brokers to connect to. May be left out where a profile says it.",
)
FORMER_ADDRESSES = {"zookeeper": "localhost:9092", "broker-list": ""}
"""How tools were told before Kafka 4 whom to ask, and whom to ask instead; else the same address."""
COMMAND_CONFIG = Option(
    name="command-config", argument="file", help="A properties file with the client's settings, credentials for one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a tool is called, does and understands."""

    name: str
    summary: str
    options: Sequence[Option]
    examples: Sequence[tuple[str, str]] = ()
    """What it does, and the command as typed after the tool's name."""

    def find(self, name: str) -> Option | None:
        """An option by its name, the common ones included."""
        options = (*self.options, *COMMON_OPTIONS)
        return next((option for option in options if name and name in {option.name, option.short}), None)

    def nearest(self, name: str) -> str:
        """The option that was probably meant, or nothing."""
        names = [option.name for option in (*self.options, *COMMON_OPTIONS) if not option.is_hidden]
        return next(iter(get_close_matches(name, names, n=1, cutoff=0.6)), "")


class UsageError(Exception):
    """What was typed cannot be understood; the usage is printed below the message."""


class GoneOption(UsageError):
    """An address of former times, which this tool never took or no longer takes; `words` are what to type instead."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        super().__init__(f"{name} is not a recognized option")
        self.name = name
        self.words = words


@dataclass(slots=True)
class Values:
    """What was typed, by option."""

    given: dict[str, list[str | None]] = field(default_factory=dict)
    defaults: dict[str, str | None] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """Words that belong to no option."""
    warnings: list[str] = field(default_factory=list)
    typed: list[tuple[str, str | None]] = field(default_factory=list)
    """Options with their values in the order they were typed."""

    def has(self, name: str) -> bool:
        """Whether the option was typed."""
        return name in self.given

    def get(self, name: str) -> str | None:
        """The option's last value, or its default."""
        if name in self.given:
            return self.given[name][-1]
        return self.defaults.get(name)

    def require(self, name: str) -> str:
        """The value of an option that must be there."""
        value = self.get(name)
        if value is None:
            raise UsageError(f'Missing required argument "[{name}]"')
        return value

    def all(self, name: str) -> list[str]:
        """Every value of a repeated option."""
        return [value for value in self.given.get(name, ()) if value is not None]

    def number(self, name: str) -> int | None:
        """The option's value as an integer."""
        text = self.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"Cannot parse argument '{text}' of option {name}") from None

    def pairs(self, name: str) -> dict[str, str]:
        """`key=value` values, split at the first sign; a key alone has the empty value."""
        found = {}
        for text in self.all(name):
            key, _, value = text.partition("=")
            if not key:
                raise UsageError(f"Invalid command line properties: {text}")
            found[key] = value
        return found


def read_options(tool: Tool, arguments: Sequence[str]) -> Values:
    """Hold what was typed against the tool's table; UsageError says what does not fit."""
    values = Values(defaults={option.name: option.default for option in (*tool.options, *COMMON_OPTIONS)})
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if word == "--":
            values.words += arguments[position:]
            break
        if not word.startswith("-") or word == "-":
            values.words.append(word)
            continue
        # People type -topic too, and Kafka's parser has always let them.
        name, sign, attached = word.lstrip("-").partition("=")
        option = tool.find(name)
        if option is None and name in FORMER_ADDRESSES and tool.find(BOOTSTRAP.name):
            raise GoneOption(name, _with_bootstrap(arguments, position, name, attached if sign else None))
        if option is None:
            meant = tool.nearest(name)
            raise UsageError(f"{name} is not a recognized option" + (f"; did you mean --{meant}?" if meant else ""))
        taken, position = _arguments_of(option, attached if sign else None, arguments, position)
        _note(values, option, taken)
    _check(tool, values)
    return values


def _with_bootstrap(arguments: Sequence[str], position: int, name: str, attached: str | None) -> list[str]:
    """What was typed, with the brokers' address in place of the former one whose value is attached or comes next."""
    end = position if attached is not None else position + 1
    said = attached if attached is not None else "".join(arguments[position:end])
    address = FORMER_ADDRESSES[name] or said
    return [*arguments[: position - 1], f"--{BOOTSTRAP.name}", address, *arguments[end:]]


def _arguments_of(
    option: Option, attached: str | None, arguments: Sequence[str], position: int
) -> tuple[list[str | None], int]:
    if not option.argument:
        if attached is not None:
            raise UsageError(f"Option {option.name} does not take an argument")
        return [None], position
    if attached is not None:
        return [attached], position
    if option.takes_many:
        end = position
        while end < len(arguments) and not arguments[end].startswith("--"):
            end += 1
        if end == position:
            raise UsageError(f"Option {option.name} requires an argument")
        return list(arguments[position:end]), end
    if position < len(arguments) and not (option.is_argument_optional and arguments[position].startswith("-")):
        return [arguments[position]], position + 1
    if option.is_argument_optional:
        return [None], position
    raise UsageError(f"Option {option.name} requires an argument")


def _note(values: Values, option: Option, taken: list[str | None]) -> None:
    for value in taken:
        if value is not None and option.choices and value not in option.choices:
            raise UsageError(f"Cannot parse argument '{value}' of option {option.name}")
    name = option.name
    if option.replaced_by:
        warning = option.warning or (
            f"Warning: --{name} is deprecated and will be removed in a future version. "
            f"Use --{option.replaced_by} instead."
        )
        if warning not in values.warnings:
            values.warnings.append(warning)
        values.given.setdefault(name, []).extend(taken)
        name = option.replaced_by
    values.given.setdefault(name, []).extend(taken)
    values.typed.extend((name, value) for value in taken)


def _check(tool: Tool, values: Values) -> None:
    for option in tool.options:
        old, new = option.name, option.replaced_by
        if new and old in values.given and _was_typed_too(tool, values, new, old):
            raise UsageError(option.conflict or f'Option "[{new}]" can\'t be used with option "[{old}]"')
    for option in tool.options:
        is_one = not (option.is_repeatable or option.takes_many or option.replaced_by)
        if is_one and len(values.given.get(option.name, ())) > 1:
            raise UsageError(f"Found multiple arguments for option {option.name}, but you asked for only one")


def _was_typed_too(tool: Tool, values: Values, new: str, old: str) -> bool:
    """Whether the new name was typed besides the old one: then there are more values than the old ones gave."""
    olds = {option.name for option in tool.options if option.replaced_by == new}
    return len(values.given[new]) > sum(len(values.given.get(name, ())) for name in olds | {old})


def exactly_one(values: Values, names: Sequence[str], message: str) -> str:
    """The one of these options that was typed; UsageError with Kafka's sentence if it is none or several."""
    typed = [name for name in names if values.has(name)]
    if len(typed) != 1:
        raise UsageError(message)
    return typed[0]


def not_together(values: Values, name: str, others: Sequence[str]) -> None:
    """Refuse options that exclude each other, in Kafka's words."""
    if values.has(name):
        for other in others:
            if values.has(other):
                raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')
