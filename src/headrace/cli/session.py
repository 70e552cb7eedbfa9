"""How a tool runs: options read, cluster reached, result printed, errors told in a sentence, exit code out."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.patience import patience
from headrace.cli.profile import load_profile
from headrace.cli.report import Report
from headrace.cli.tool import GoneOption, UsageError, Values, read_options
from headrace.cli.version import tool_version
from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault
from headrace.client.options import ConnectionOptions, connection_options
from headrace.model.errors import HeadraceError, KafkaError
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from headrace.cli.tool import Tool

    Work = Callable[["Session"], Awaitable[int | None]]
    Refusal = Callable[[HeadraceError], str]

INTERRUPTED = 130
_UMBRELLA = "headrace "
"""How the name of a command of our own begins, where a tool is known by the name it was called by."""


class Failure(HeadraceError):
    """A tool cannot do what was asked: what to print, where Kafka prints it, and what to do about it."""

    def __init__(self, message: str, *, remedy: str = "", on_stdout: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.on_stdout = on_stdout


def tell_of_settings(properties: Mapping[str, str]) -> None:
    """Say of which client's settings nothing comes; a tool goes on without them, as Kafka's do."""
    if properties.keys() <= {"bootstrap.servers"}:
        return
    from headrace.client.java_settings import notices

    for line in notices(properties):
        print(f"Warning: {line}", file=sys.stderr)


class Session:
    """One run of a tool: what was typed, where results go, and the way to the cluster."""

    def __init__(self, values: Values, program: str) -> None:
        self.values = values
        self.program = program
        self.report = Report(values.get("output") or "text")
        self._cluster: Cluster | None = None
        self._properties: dict[str, str] | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster; connections are made when the first question is asked."""
        if self._cluster is None:
            self._cluster = Cluster(self.connection())
        return self._cluster

    def properties(self) -> dict[str, str]:
        """The client's settings: profile, then the file of --command-config, then --command-property."""
        if self._properties is None:
            self._properties = self._read_properties()
            tell_of_settings(self._properties)
        return dict(self._properties)

    def _read_properties(self) -> dict[str, str]:
        values = self.values
        found = (
            {} if values.has("bootstrap-server") and not values.has("profile") else load_profile(values.get("profile"))
        )
        config = values.get("command-config")
        if config:
            found |= load_properties(config)
        return found | values.pairs("command-property")

    def bootstrap(self) -> str:
        """The brokers to ask; UsageError in Kafka's words if nobody says which."""
        address = self.values.get("bootstrap-server") or self.properties().get("bootstrap.servers")
        if not address:
            raise UsageError('Missing required argument "[bootstrap-server]"')
        return address

    def connection(self) -> ConnectionOptions:
        """How to reach the cluster."""
        address = self.bootstrap()
        return connection_options(address, {"client.id": self.program_name, **self.properties()})

    @property
    def program_name(self) -> str:
        """The tool's bare name, which is also what it calls itself to the broker."""
        return self.program.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".sh").removesuffix(".bat")

    def waiting(self) -> AbstractContextManager[None]:
        """While the cluster is asked: a word for people if that takes long."""
        return patience(f"{self.program_name} waits for the cluster's answer")

    async def close(self) -> None:
        """Hang up."""
        if self._cluster is not None:
            await self._cluster.close()


def run_tool(
    tool: Tool,
    arguments: Sequence[str],
    program: str,
    work: Work,
    *,
    check: Callable[[Values], None] | None = None,
    refusal: Refusal | None = None,
    is_own: bool = False,
    serves: bool = False,
    streams: bool = False,
) -> int:
    """Run a tool from its arguments to its exit code.

    `check` refuses what does not go together before anything is asked; `refusal` words a failure as Kafka's tool does.
    A command of our own (`is_own`) may be typed without arguments, and its help is no error. One that goes on for long
    and `serves` others has the faster loop, which takes longer to load. All others say so when they wait for answers;
    those of our own and one that `streams` say by themselves what they do.
    """
    if not arguments and not is_own:
        return _print_usage(tool, program, tool.summary)
    values = Values()
    try:
        values = read_options(tool, arguments)
        if values.has("help"):
            return _print_help(tool, program) if is_own else _print_usage(tool, program, tool.summary)
        if values.has("version"):
            print(tool_version())
            return 0
        if check is not None:
            check(values)
        for warning in values.warnings:
            print(warning, file=sys.stdout if values.get("output") == "text" else sys.stderr)
        return _run(Session(values, program), work, serves=serves, asks=not (is_own or serves or streams))
    except GoneOption as gone:
        return _say_instead(program, gone)
    except UsageError as error:
        return _refuse(tool, program, str(error))
    except (Failure, ClientFault, KafkaError, HeadraceError) as error:
        return _tell(error, values, refusal)


def _run(session: Session, work: Work, *, serves: bool, asks: bool) -> int:
    async def main() -> int:
        try:
            with session.waiting() if asks else contextlib.nullcontext():
                return await work(session) or 0
        finally:
            await session.close()

    if serves:
        with contextlib.suppress(ImportError):
            import uvloop  # not on Windows

            return uvloop.run(main())
    return asyncio.run(main())


def _say_instead(program: str, gone: GoneOption) -> int:
    import shlex

    print(f"--{gone.name} is no option of Kafka 4. Type: {program} {shlex.join(gone.words)}", file=sys.stderr)
    return 1


def _refuse(tool: Tool, program: str, message: str) -> int:
    """Say what cannot be understood: Kafka's tools print all they know below it, our own commands where that stands."""
    if not program.startswith(_UMBRELLA):
        return _print_usage(tool, program, message)
    print(message, file=sys.stderr)
    print(f"`{program} --help` shows what can be typed.", file=sys.stderr)
    return 1


def _print_usage(tool: Tool, program: str, message: str) -> int:
    from headrace.cli.usage import usage

    print(message, file=sys.stderr)
    print(usage(tool, program), end="", file=sys.stderr)
    return 1


def _print_help(tool: Tool, program: str) -> int:
    from headrace.cli.usage import usage

    print(tool.summary, usage(tool, program), sep="\n", end="")
    return 0


def _tell(error: HeadraceError, values: Values, refusal: Refusal | None) -> int:
    """Say what went wrong as Kafka's tool would, then what to do about it."""
    if values.has("v") or values.has("verbose-errors"):
        import traceback

        traceback.print_exception(error)
    remedy = getattr(error, "remedy", "")
    # A program that reads the results finds nothing else among them.
    people = sys.stdout if values.get("output") in {None, "text"} else sys.stderr
    if isinstance(error, Failure):
        print(error.message, file=people if error.on_stdout else sys.stderr)
    elif refusal is not None:
        print(refusal(error), file=people)
    else:
        print(describe(error), file=sys.stderr)
    if remedy:
        print(remedy, file=sys.stderr)
    return 1


def describe(error: Any) -> str:
    """What went wrong, in one sentence without the advice."""
    if isinstance(error, ClientFault):
        return f"{error.problem}."
    if isinstance(error, KafkaError):
        from headrace.cli.java_words import sentence_of

        return sentence_of(error)
    remedy = getattr(error, "remedy", "")
    return str(error).removesuffix(remedy).rstrip()
