"""kafka-server-stop: ask running servers to shut down cleanly.

Like Kafka's script it asks every server of this person on this machine, or those of one node id or process role, and
returns without waiting. Where Kafka's exits 0 although nothing matched, this says so and exits 1. Where Kafka's ends
every server that has the node id, whatever cluster it is of, this ends none and asks which one is meant.
"""

import argparse
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from headrace.cli.arguments import Parser, add_output
from headrace.cli.node_choice import DATA_HELP, choose_nodes
from headrace.cli.report import TEXT, Report
from headrace.cli.running import RunningServer, running_servers
from headrace.cli.session import Failure

_EXAMPLES = """\
Examples:
  All servers of this machine   {0}
  One of them                   {0} --node-id 2
  Where two clusters have it    {0} --node-id 2 --data elsewhere
  The hard way                  SIGNAL=KILL {0}
"""
_WAIT_SECONDS_MAX = 120
"""A clean shutdown flushes every log; longer than this and the person should be told."""


def main(arguments: Sequence[str], program: str, *, wait: bool = False) -> int:
    """Send SIGTERM (or the signal named by SIGNAL) to the servers that match."""
    parser = Parser(
        prog=program,
        description="Stop running servers.",
        epilog=_EXAMPLES.format(program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--process-role", help="only servers with exactly these process.roles")
    parser.add_argument("--node-id", type=int, help="only the server with this node.id")
    parser.add_argument("--data", metavar="directory", help=f"{DATA_HELP[0].lower()}{DATA_HELP[1:-1]}")
    add_output(parser)
    options = parser.parse_args(list(arguments))
    report = Report(options.output)
    if options.node_id is not None and options.process_role is not None:
        report.note("When both node-id and process-role are provided, the value for node-id will take precedence")
    try:
        servers = choose_nodes(running_servers(), node_id=options.node_id, data=options.data)
    except Failure as failure:
        report.note(f"{failure.message}\n{failure.remedy}")
        return 1
    if options.process_role is not None and options.node_id is None:
        servers = [server for server in servers if _has_roles(server, options.process_role)]
    if not servers:
        report.note("No kafka server to stop")
        return 1
    code = stop_servers(servers, wait=wait, report=report)
    report.data(
        [{"nodeId": server.node_id, "processRoles": server.process_roles, "pid": server.pid} for server in servers]
    )
    return code


def stop_servers(servers: list[RunningServer], *, wait: bool, report: Report | None = None) -> int:
    """Send them SIGTERM (or the signal named by SIGNAL), and wait until they are gone if asked to."""
    report = report or Report(TEXT)
    number = _signal()
    if number is None:
        report.note(f"SIGNAL={os.environ['SIGNAL']} is no signal. Say TERM, INT or KILL, or leave it out.")
        return 1
    for server in servers:
        # One that ended by itself a moment ago must not keep the others from being told.
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
            if wait and hasattr(signal, "SIGCONT"):
                # One that is suspended would hear of it only when it goes on.
                os.kill(server.pid, signal.SIGCONT)
    return _wait_for(servers, report) if wait else 0


def _signal() -> signal.Signals | None:
    """Which signal to send, by its name or number as for kill(1); None if there is no such."""
    name = os.environ.get("SIGNAL", "TERM").upper()
    try:
        return signal.Signals(int(name)) if name.isdecimal() else signal.Signals[f"SIG{name.removeprefix('SIG')}"]
    except (KeyError, ValueError):
        return None


def _has_roles(server: RunningServer, roles: str) -> bool:
    return set(server.process_roles.split(",")) == set(roles.split(","))


def _wait_for(servers: list[RunningServer], report: Report) -> int:
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while remaining := [server for server in servers if server in running_servers()]:
        if time.monotonic() > deadline:
            report.note(
                f"Process {remaining[0].pid} is still shutting down after {_WAIT_SECONDS_MAX} s; its log says why."
            )
            return 1
        time.sleep(0.05)
    for server in servers:
        report.line(f"Stopped node {server.node_id} (process {server.pid}).")
    return 0
