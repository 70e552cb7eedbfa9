"""kafka-server-start: run a server in the foreground, or detached with -daemon.

`-daemon` returns as soon as the server is up, or after a moment if it has much to recover: a wrong setting or a taken
port is reported here, where the person looks, and not only in the log.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from headrace.cli.layout import log_directory
from headrace.cli.report import TEXT, Report
from headrace.cli.running import RunningServer, registered
from headrace.cli.tool import OUTPUT_FORMATS
from headrace.cli.version import tool_version
from headrace.model.errors import HeadraceError
from headrace.settings.broker import BrokerConfig
from headrace.settings.fault import ConfigFault

_FIRST_MOMENT_SECONDS = 5.0
_STARTED = b"broker_started"
"""The event a server logs once clients can connect."""
_LAST_WORDS_LINES = 10
_EXAMPLES = """\
Examples:
  In the foreground                {0} config/server.properties
  In the background, for programs  {0} -daemon config/server.properties --output json
  With another setting             {0} config/server.properties --override log.retention.hours=24
"""
STARTED = "HEADRACE_STARTED"
"""What `headrace start` leaves in the environment of the servers it starts."""


def main(arguments: Sequence[str], program: str) -> int:
    """Parse as Kafka's script and class do, then run."""
    daemon = arguments[:1] == ["-daemon"]
    rest, kind = _output_of(arguments[1:] if daemon else arguments)
    if "--version" in rest:
        print(tool_version())
        return 0
    if not rest or "--help" in rest:
        print(f"USAGE: {program} [-daemon] server.properties [--override property=value]*")
        if "--help" in rest:
            print(_EXAMPLES.format(program), end="", file=sys.stderr)
        return 1
    if kind not in OUTPUT_FORMATS or (kind != TEXT and not daemon):
        print(
            "--output json and --output yaml go with -daemon: in the foreground a server prints its log.",
            file=sys.stderr,
        )
        return 1
    try:
        overrides = _overrides(rest[1:])
        # Read before anything is started: what is wrong with the settings is said at once, daemon or not.
        config = BrokerConfig.load(rest[0], overrides)
    except HeadraceError as error:
        print(error, file=sys.stderr)
        return 1
    if daemon:
        return _detach(rest, config, Report(kind))
    with registered(describe_server(config)):
        from headrace.broker.server import run

        return run(Path(rest[0]), overrides)


def describe_server(config: BrokerConfig) -> RunningServer:
    """What others on this machine may know about the server."""
    clients = [listener for listener in config.advertised if listener.name not in config.controller_listener_names]
    where = next((f"{listener.host or 'localhost'}:{listener.port}" for listener in clients if listener.port), "")
    return RunningServer(
        node_id=config.node_id,
        process_roles=",".join(sorted(config.roles)),
        address=where,
        data=",".join(os.path.abspath(directory) for directory in config.log_dirs),  # noqa: PTH100 - links stay as typed
        by_start=STARTED in os.environ,
    )


def _overrides(arguments: Sequence[str]) -> dict[str, str]:
    """`--override k=v` and `--override=k=v`, any number of times; a later one wins."""
    chosen: dict[str, str] = {}
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--override" and remaining:
            pair = remaining.pop(0)
        elif word.startswith("--override="):
            pair = word.removeprefix("--override=")
        elif word.startswith("-"):
            raise ConfigFault(f"{word} is not an option, or lacks its argument", "Write --override property=value.")
        else:
            raise ConfigFault(f"Found non argument parameters: {word}", "Write --override property=value.")
        name, _, value = pair.partition("=")
        if not name:
            raise ConfigFault(f"Invalid command line properties: {pair}", "Write --override property=value.")
        chosen[name.strip()] = value.strip()
    return chosen


def _output_of(arguments: Sequence[str]) -> tuple[list[str], str]:
    """What was typed without `--output KIND`, and the kind."""
    rest, kind = list(arguments), TEXT
    for place, word in enumerate(rest):
        if word == "--output" and place + 1 < len(rest):
            kind = rest[place + 1]
            del rest[place : place + 2]
            break
        if word.startswith("--output="):
            kind = rest.pop(place).partition("=")[2]
            break
    return rest, kind


def _detach(arguments: Sequence[str], config: BrokerConfig, report: Report) -> int:
    directory = log_directory()
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "server.log"
    command = [sys.executable, "-P", "-m", "headrace.cli", "kafka-server-start", *arguments]
    with log.open("ab") as output:
        before = output.tell()
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, close_fds=True
        )
    deadline = time.monotonic() + _FIRST_MOMENT_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        if _STARTED in _since(log, before):
            break
        time.sleep(0.02)
    if server.returncode is None:
        # It lives; from here on it belongs to init, not to us, and Python need not warn that nobody waited for it.
        server.returncode = 0
        described = describe_server(config)
        report.data(
            {
                "nodeId": described.node_id,
                "processRoles": described.process_roles,
                "address": described.address,
                "pid": server.pid,
                "log": str(log),
            }
        )
        return 0
    print(f"The server ended at once, with exit code {server.returncode}. The end of {log}:", file=sys.stderr)
    for line in _since(log, before).decode(errors="replace").splitlines()[-_LAST_WORDS_LINES:]:
        print(f"  {line}", file=sys.stderr)
    return 1


def _since(log: Path, position: int) -> bytes:
    """What this server has said, and not what all those before it did."""
    with log.open("rb") as file:
        file.seek(position)
        return file.read()
