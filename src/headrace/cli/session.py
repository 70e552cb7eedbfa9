"""How a tool runs: options read, cluster reached, result printed, errors told in a sentence, exit code out."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from headrace import __version__
from headrace.cli.profile import load_profile
from headrace.cli.report import Report
from headrace.cli.tool import UsageError, Values, read_options
from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault
from headrace.client.options import ConnectionOptions, connection_options
from headrace.model.errors import HeadraceError, KafkaError
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from headrace.cli.tool import Tool

    Work = Callable[["Session"], Awaitable[int | None]]
    Refusal = Callable[[HeadraceError], str]

KAFKA_VERSION = "4.3.1"
INTERRUPTED = 130


class Failure(HeadraceError):
    """A tool cannot do what was asked: what to print, where Kafka prints it, and what to do about it."""

    def __init__(self, message: str, *, remedy: str = "", on_stdout: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.on_stdout = on_stdout


class Session:
    """One run of a tool: what was typed, where results go, and the way to the cluster."""

    def __init__(self, values: Values, program: str) -> None:
        self.values = values
        self.program = program
        self.report = Report(values.get("output") or "text")
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster; connections are made when the first question is asked."""
        if self._cluster is None:
            self._cluster = Cluster(self.connection())
        return self._cluster

    def properties(self) -> dict[str, str]:
        """The client's settings: profile, then the file of --command-config, then --command-property."""
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
) -> int:
    """Run a tool from its arguments to its exit code.

    `check` refuses what does not go together before anything is asked; `refusal` words a failure as Kafka's tool does.
    A command of our own (`is_own`) may be typed without arguments, and its help is no error. One that goes on for long
    and `serves` others has the faster loop, which takes longer to load.
    """
    if not arguments and not is_own:
        return _print_usage(tool, program, tool.summary)
    values = Values()
    try:
        values = read_options(tool, arguments)
        if values.has("help"):
            return _print_help(tool, program) if is_own else _print_usage(tool, program, tool.summary)
        if values.has("version"):
            print(f"{KAFKA_VERSION} (Headrace {__version__})")
            return 0
        if check is not None:
            check(values)
        for warning in values.warnings:
            print(warning, file=sys.stdout if values.get("output") == "text" else sys.stderr)
        return _run(Session(values, program), work, serves=serves)
    except UsageError as error:
        return _print_usage(tool, program, str(error))
    except (Failure, ClientFault, KafkaError, HeadraceError) as error:
        return _tell(error, values, refusal)


def _run(session: Session, work: Work, *, serves: bool) -> int:
    async def main() -> int:
        try:
            return await work(session) or 0
        finally:
            await session.close()

    if serves:
        with contextlib.suppress(ImportError):
            import uvloop  # not on Windows

            return uvloop.run(main())
    return asyncio.run(main())


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
