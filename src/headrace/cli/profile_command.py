"""`headrace profile`: the saved clusters, and which of them the tools talk to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli import profile
from headrace.cli.colours import BOLD, paint
from headrace.cli.session import Failure, run_tool, tell_of_settings
from headrace.cli.tool import COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.cli.session import Session

_SECRETS = ("password", "jaas", "token", "secret")

TOOL = Tool(
    name="headrace profile",
    summary="Saved clusters: list | show [name] | use name | add name host:port,... | remove name",
    options=(
        COMMAND_CONFIG,
        Option(
            name="command-property",
            argument="name=value",
            is_repeatable=True,
            help="A client setting to save with `add`; may be given several times.",
        ),
    ),
    examples=(
        ("Which clusters are known", "list"),
        ("Save one, with its credentials", "add work kafka.example:9092 --command-config client.properties"),
        ("Talk to it from now on", "use work"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _run, check=_check, is_own=True)


def _check(values: Values) -> None:
    verb, *names = values.words or ["list"]
    if verb not in _VERBS:
        raise UsageError(f"'{verb}' is none of {', '.join(_VERBS)}")
    least, most, _ = _VERBS[verb]
    if not least <= len(names) <= most:
        raise UsageError(f"'{verb}' takes another number of words")


async def _run(session: Session) -> int:
    verb, *names = session.values.words or ["list"]
    _VERBS[verb][2](session, names)
    return 0


def _list(session: Session, names: Sequence[str]) -> None:
    found = [
        {"name": name, "bootstrapServers": profile.load_profile(name).get("bootstrap.servers", "")}
        for name in profile.profiles()
    ]
    rows = [("", "NAME", "BOOTSTRAP-SERVERS")]
    rows += [("*" if one["name"] == profile.current() else "", one["name"], one["bootstrapServers"]) for one in found]
    width = max(len(name) for _, name, _ in rows)
    for index, (mark, name, servers) in enumerate(rows):
        line = f"{mark:<1} {name:<{width}}  {servers}".rstrip()
        session.report.line(paint(line, BOLD) if index == 0 else line)
    session.report.data({"current": profile.current(), "profiles": found})


def _show(session: Session, names: Sequence[str]) -> None:
    name = names[0] if names else profile.current()
    # Passwords are shown to nobody: who may know them can read the file.
    settings = {
        key: "[hidden]" if any(word in key for word in _SECRETS) else value
        for key, value in profile.load_profile(name).items()
    }
    session.report.line(f"# {name}: {profile.profile_path(name)}")
    for key, value in settings.items():
        session.report.line(f"{key}={value}")
    session.report.data({"name": name, "file": str(profile.profile_path(name)), "settings": settings})


def _use(session: Session, names: Sequence[str]) -> None:
    profile.use_profile(names[0])
    servers = profile.load_profile(names[0]).get("bootstrap.servers", "")
    session.report.line(f"The tools talk to {servers} from now on.")
    session.report.data({"current": names[0], "bootstrapServers": servers})


def _add(session: Session, names: Sequence[str]) -> None:
    config = session.values.get("command-config")
    settings = load_properties(config) if config else {}
    settings |= session.values.pairs("command-property")
    if len(names) > 1:
        settings["bootstrap.servers"] = names[1]
    if not settings.get("bootstrap.servers"):
        raise Failure("Nobody says where this cluster is.", remedy="Write the address of a broker after the name.")
    tell_of_settings(settings)
    path = profile.save_profile(names[0], settings)
    session.report.line(f"Saved {names[0]} in {path}.")
    session.report.data({"name": names[0], "file": str(path)})


def _remove(session: Session, names: Sequence[str]) -> None:
    profile.load_profile(names[0])
    profile.forget_profile(names[0])
    session.report.line(f"Removed {names[0]}.")
    session.report.data({"removed": names[0]})


_VERBS: dict[str, tuple[int, int, Callable[[Session, Sequence[str]], None]]] = {
    "list": (0, 0, _list),
    "show": (0, 1, _show),
    "use": (1, 1, _use),
    "add": (1, 2, _add),
    "remove": (1, 1, _remove),
}
"""How many words each takes, and what does it."""
