"""The umbrella command `headrace`, and the one door through which every tool is entered.

A tool is a module with `main(arguments, program)`, imported only when it is asked for: `headrace --help` must answer
at once, whatever the tools need. Kafka's tool names are commands of the umbrella too, which is how the launchers in
bin/ reach them; an installed package has a script of that name.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol, cast

from headrace.cli.bootstrap import SetupError

TOOLS = {
    "kafka-get-offsets": "headrace.cli.get_offsets",
    "kafka-server-start": "headrace.cli.server_start",
    "kafka-server-stop": "headrace.cli.server_stop",
    "kafka-storage": "headrace.cli.storage",
}
"""Kafka's names; each has launchers in bin/ and bin/windows/ and a script in the package."""

COMMANDS = {
    "server": "headrace.cli.server",
    "storage": "headrace.cli.storage",
    "python": "headrace.cli.python",
    "bench": "headrace.cli.bench",
    "version": "headrace.cli.version",
    "--version": "headrace.cli.version",
}
"""Headrace's own names."""

HELP = """\
Headrace: an event streaming broker that speaks Apache Kafka's protocol.

  headrace server start    start a broker on this machine (port 9092)
  headrace server stop     stop it, cleanly
  headrace server format   prepare its log directories by hand
  headrace storage ...     look at and format log directories, make ids
  headrace python ...      Python with a Kafka client in it, for your scripts
  headrace bench           measure this broker beside Apache Kafka
  headrace version         which version this is

Kafka's own names work too: {tools}.
Each of them says more with --help.
"""


class Tool(Protocol):
    """What a tool's module offers."""

    def main(self, arguments: Sequence[str], program: str) -> int:
        """Run the tool; `program` is the name it was called by. Returns the exit code."""


def main() -> int:
    """Run the tool whose name the program was called by, or the one named by the first argument."""
    called = os.environ.pop("HEADRACE_INVOKED_AS", sys.argv[0])
    name = PurePath(sys.argv[0]).stem
    arguments = sys.argv[1:]
    if name in TOOLS:
        return run(TOOLS[name], arguments, program=called)
    command, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if command in {"help", "--help", "-h"}:
        print(HELP.format(tools=", ".join(TOOLS)), end="")
        return 0
    if command in TOOLS:
        return run(TOOLS[command], rest, program=called)
    if command in COMMANDS:
        return run(COMMANDS[command], rest, program=f"headrace {command}")
    print(f"headrace: there is no command '{command}'.", file=sys.stderr)
    print("`headrace help` lists the commands.", file=sys.stderr)
    return 1


def run(module: str, arguments: Sequence[str], *, program: str) -> int:
    """Import a tool and run it, so that what it cannot do ends in a sentence and an exit code."""
    try:
        return cast("Tool", importlib.import_module(module)).main(arguments, program)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing more, not even when Python closes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
