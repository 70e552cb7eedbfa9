"""kafka-server-stop: ask running servers to shut down cleanly.

Like Kafka's script it asks every server of this person on this machine, or those of one node id or process role, and
returns without waiting. Where Kafka's exits 0 although nothing matched, this says so and exits 1.
"""

import argparse
import os
import signal
import time
from collections.abc import Sequence

from headrace.cli.arguments import Parser
from headrace.cli.running import RunningServer, running_servers

_WAIT_SECONDS_MAX = 120
"""A clean shutdown flushes every log; longer than this and the person should be told."""


def main(arguments: Sequence[str], program: str, *, wait: bool = False) -> int:
    """Send SIGTERM (or the signal named by SIGNAL) to the servers that match."""
    parser = Parser(prog=program, description="Stop running servers.")
    parser.add_argument("--process-role", help="only servers with exactly these process.roles")
    parser.add_argument("--node-id", type=int, help="only the server with this node.id")
    options = parser.parse_args(list(arguments))
    if options.node_id is not None and options.process_role is not None:
        print("When both node-id and process-role are provided, the value for node-id will take precedence")
    servers = [server for server in running_servers() if _matches(server, options)]
    if not servers:
        print("No kafka server to stop")
        return 1
    return stop_servers(servers, wait=wait)


def stop_servers(servers: list[RunningServer], *, wait: bool) -> int:
    """Send them SIGTERM (or the signal named by SIGNAL), and wait until they are gone if asked to."""
    name = os.environ.get("SIGNAL", "TERM")
    number = signal.Signals[f"SIG{name.removeprefix('SIG')}"]
    for server in servers:
        os.kill(server.pid, number)
    return _wait_for(servers) if wait else 0


def _matches(server: RunningServer, options: argparse.Namespace) -> bool:
    if options.node_id is not None:
        return bool(server.node_id == options.node_id)
    if options.process_role is not None:
        return set(server.process_roles.split(",")) == set(options.process_role.split(","))
    return True


def _wait_for(servers: list[RunningServer]) -> int:
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while remaining := [server for server in servers if server in running_servers()]:
        if time.monotonic() > deadline:
            print(f"Process {remaining[0].pid} is still shutting down after {_WAIT_SECONDS_MAX} s; its log says why.")
            return 1
        time.sleep(0.05)
    for server in servers:
        print(f"Stopped node {server.node_id} (process {server.pid}).")
    return 0
