"""`headrace gateway`: the HTTP door of a cluster, in the foreground or detached with --daemon."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from headrace.cli.extras import ensure_extra
from headrace.cli.gateways import Launch, gateway_document, shown_gateway
from headrace.cli.nodes import RUNNING
from headrace.cli.running import RunningGateway, registered
from headrace.cli.server_start import STARTED
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool
from headrace.settings.gateway import CLIENT_PREFIX, GatewayConfig
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

_DAEMON = ("--daemon", "-daemon", "-d")
_GARBAGE_THRESHOLDS = (5_000, 10, 10)
"""Containers made before the collector looks at the young ones, and how many looks before it turns to older ones."""

TOOL = Tool(
    name="headrace gateway",
    summary="REST, streams and the web console of a cluster, Headrace's or Apache Kafka's, over HTTP.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="config", short="c", argument="file", help="The gateway's settings, as properties."),
        Option(name="listen", short="l", argument="url", help="Where to listen, instead of http://127.0.0.1:8082."),
        Option(name="set", argument="name=value", help="A setting, over what the file says.", is_repeatable=True),
        Option(name="no-console", help="Serve no web console."),
        Option(name="daemon", short="d", help="Detach, and return as soon as it listens."),
    ),
    examples=(
        ("Before the broker on this machine", ""),
        ("The same in the background", "--daemon"),
        ("For the whole network", "--listen http://0.0.0.0:8082 --set allowed.hosts=kafka.example.org"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    rest = [word for word in arguments if word not in _DAEMON]
    work = _run if len(rest) == len(arguments) else partial(_detach, rest)
    return run_tool(TOOL, [*rest, *(["--daemon"] if work is not _run else [])], program, work, is_own=True, serves=True)


def _properties(session: Session) -> dict[str, str]:
    values = session.values
    properties = {f"{CLIENT_PREFIX}{name}": value for name, value in session.properties().items()}
    file, listen, brokers = values.get("config"), values.get("listen"), values.get("bootstrap-server")
    properties |= load_properties(file) if file else {}
    properties |= values.pairs("set")
    if listen:
        properties["listeners"] = listen
    if brokers:
        properties["bootstrap.servers"] = brokers
    if values.has("no-console"):
        properties["console.enable"] = "false"
    return properties


async def _detach(arguments: Sequence[str], session: Session) -> int:
    ensure_extra("client", "gateway")
    # Read before anything is started: what is wrong with the settings is said at once.
    GatewayConfig(_properties(session))
    gateway = Launch(arguments).listening()
    session.report.line(shown_gateway(gateway))
    session.report.data(gateway_document(gateway, RUNNING))
    return 0


def _describe(config: GatewayConfig, url: str) -> RunningGateway:
    return RunningGateway(
        url=url,
        brokers=config.client.get("bootstrap.servers", ""),
        has_console=config["console.enable"],
        by_start=STARTED in os.environ,
    )


def _settle() -> None:
    """Take what was made at the start out of the garbage collector's sight: looking it through stops the loop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


async def _run(session: Session) -> int:
    ensure_extra("client", "gateway")
    from headrace.gateway.gateway import Gateway

    config = GatewayConfig(_properties(session))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    from headrace.console import mount

    gateway = Gateway(config, mount=mount if config["console.enable"] else None)
    await gateway.start()
    _settle()
    # Findable until it is down, so that who stops it can wait for that.
    with registered(_describe(config, gateway.addresses[0].url)):
        for address in gateway.addresses:
            print(f"Headrace gateway at {address.url}", flush=True)
        await ended.wait()
        print("Stopping.", file=sys.stderr)
        await gateway.stop()
    return 0
