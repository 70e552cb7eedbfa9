"""What a command line can go on with: commands, options, their values; names of topics and groups from the broker.

Whatever goes wrong, a person who presses a key gets no error, only no candidates; and never waits longer than a second.
"""

from __future__ import annotations

import asyncio
import importlib
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.cli.main import ALIASES, COMMANDS, TOOLS
from headrace.cli.profile import load_profile, profiles
from headrace.cli.tool import COMMON_OPTIONS, Option, Tool
from headrace.client.cluster import Cluster
from headrace.client.options import connection_options
from headrace.model.errors import HeadraceError
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from headrace.cli.fronts.front import Front

PATIENCE_S = 1.0
LIST_GROUPS = 16
_USUAL = "localhost:9092"
_FRONTS = ("topics", "produce", "consume", "groups")
_TOPIC_OPTIONS = ("topic", "include")
_GROUP_OPTIONS = ("group", "groups")
_SHELLS = ("bash", "zsh", "fish")
_WORDS = {
    "server": ("start", "stop", "format"),
    **dict.fromkeys(
        ("storage", "kafka-storage"), ("info", "format", "version-mapping", "feature-dependencies", "random-uuid")
    ),
    "pipeline": ("run", "validate", "explain", "list", "status", "stop", "keys"),
    "profile": ("list", "show", "use", "add", "remove"),
    "completion": _SHELLS,
}
_GROUP_VERBS = ("describe", "members", "reset", "delete")
_TOPIC_VERBS = ("describe", "alter", "delete")


def candidates(line: str) -> list[str]:
    """What the last word of the line may become, sorted."""
    try:
        command, *words = _split(line)
        found = _candidates(_bare(command), words)
    except (HeadraceError, OSError, ImportError):
        return []
    return sorted({word for word in found if word.startswith(words[-1] if words else "")})


def _split(line: str) -> list[str]:
    """The words of a line; the last one is the one being typed, empty after a blank."""
    text = line.lstrip()
    for close in ("", "'", '"'):
        try:
            words = shlex.split(text + close)
            break
        except ValueError:
            continue
    else:
        words = text.split()
    if not words or (text[-1:].isspace() and not close):
        words.append("")
    return words


def _bare(command: str) -> str:
    return command.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".sh").removesuffix(".bat")


def _candidates(command: str, words: Sequence[str]) -> Iterable[str]:
    if command == "headrace":
        if len(words) <= 1:
            return [name for name in (*COMMANDS, *TOOLS, "help") if not name.startswith("-")]
        command, words = words[0], words[1:]
        if command in _FRONTS:
            return _of_front(importlib.import_module(f"headrace.cli.fronts.{command}").FRONT, words)
    command = ALIASES.get(command, command)
    module = TOOLS.get(command) or COMMANDS.get(command)
    if module is None or not words:
        return []
    entered = importlib.import_module(module)
    tool = getattr(entered, "TOOL", None)
    value = _of_value(tool, words)
    if value is not None:
        return value
    if words[-1].startswith("-") and isinstance(tool, Tool):
        return _options(tool, words)
    if command == "profile" and len(words) == 2 and words[0] in {"show", "use", "remove"}:
        return profiles()
    verbs = getattr(entered, "COMMANDS", {})
    if verbs and not verbs.keys() & {*words[:-1]}:
        return verbs
    return _WORDS.get(command, ()) if len(words) == 1 else []


def _of_front(front: Front, words: Sequence[str]) -> Iterable[str]:
    tool: Tool = importlib.import_module(TOOLS[front.tool]).TOOL
    *before, last = words
    typed = [front.short.get(word[1:], word[2:]) if _is_short(word) else word.removeprefix("--") for word in before]
    if typed and before[-1].startswith("-"):
        value = _of_value(tool, [*before[:-1], f"--{typed[-1]}", last])
        if value is not None:
            return value
    if last.startswith("-"):
        return _options(tool, words)
    if front.name in {"produce", "consume"}:
        return _topics(before) if not before else []
    verb = before[0] if before else ""
    if not before:
        return [name for name in front.verbs if name]
    if front.name == "topics":
        return _topics(before) if verb in _TOPIC_VERBS and len(before) == 1 else []
    if verb == "reset" and len(before) == 2:
        return _topics(before)
    return _groups(before) if verb in _GROUP_VERBS and len(before) == 1 else []


def _is_short(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--")


def _options(tool: Tool, words: Sequence[str]) -> Iterable[str]:
    typed = {word.lstrip("-") for word in words[:-1]}
    return [
        f"--{option.name}"
        for option in (*tool.options, *COMMON_OPTIONS)
        if not option.is_hidden and not option.replaced_by and (option.is_repeatable or option.name not in typed)
    ]


def _of_value(tool: Tool | None, words: Sequence[str]) -> Iterable[str] | None:
    """What the option before the last word may be given; None if there is no such option."""
    if tool is None or len(words) < 2 or not words[-2].startswith("-"):
        return None
    option = tool.find(words[-2].lstrip("-"))
    if option is None or not option.argument:
        return None
    return _values(option, words[:-2])


def _values(option: Option, before: Sequence[str]) -> Iterable[str]:
    if option.choices:
        return option.choices
    live: dict[str, Callable[[Sequence[str]], Iterable[str]]] = {
        **dict.fromkeys(_TOPIC_OPTIONS, _topics),
        **dict.fromkeys(_GROUP_OPTIONS, _groups),
        "profile": lambda _: profiles(),
        "bootstrap-server": lambda _: _known_addresses(),
    }
    ask = live.get(option.name)
    return ask(before) if ask else []


def _known_addresses() -> list[str]:
    found = {load_profile(name).get("bootstrap.servers", "") for name in profiles()}
    return [address for address in found if address] or [_USUAL]


# --- asking the broker


def _topics(before: Sequence[str]) -> list[str]:
    async def ask(cluster: Cluster) -> list[str]:
        return [topic.name for topic in (await cluster.metadata()).topics if topic.name]

    return _ask(before, ask)


def _groups(before: Sequence[str]) -> list[str]:
    async def ask(cluster: Cluster) -> list[str]:
        from headrace.wire.messages.list_groups import ListGroupsRequest

        found = []
        for node_id in await cluster.brokers():
            answer = await cluster.ask(LIST_GROUPS, ListGroupsRequest(), node_id=node_id)
            found += [group.group_id for group in answer.groups]
        return found

    return _ask(before, ask)


def _ask(before: Sequence[str], question: Callable[[Cluster], Awaitable[list[str]]]) -> list[str]:
    """Put a question to the cluster that the line names, or the profile."""
    properties = load_profile(_typed(before, "profile"))
    config = _typed(before, "command-config")
    if config:
        properties |= load_properties(config)
    address = _typed(before, "bootstrap-server") or _typed(before, "b") or properties.get("bootstrap.servers") or _USUAL
    options = replace(
        connection_options(address, properties), connect_timeout_s=PATIENCE_S, request_timeout_s=PATIENCE_S
    )

    async def within_bounds() -> list[str]:
        async with asyncio.timeout(PATIENCE_S), Cluster(options) as cluster:
            return await question(cluster)

    return asyncio.run(within_bounds())


def _typed(before: Sequence[str], name: str) -> str | None:
    """The value of an option that stands earlier in the line."""
    for word, value in zip(before, (*before[1:], ""), strict=False):
        if word.lstrip("-") == name and word.startswith("-"):
            return value or None
        if word.lstrip("-").startswith(f"{name}="):
            return word.partition("=")[2]
    return None
