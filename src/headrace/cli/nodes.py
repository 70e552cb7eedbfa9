"""The nodes of this machine: what `headrace start` is about to start, which of them run, and whether they answer."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.layout import project_root, sample_config
from headrace.cli.running import RunningServer, running_servers
from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault
from headrace.client.options import connection_options

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

RUNNING, STARTING, STOPPED, SILENT = "running", "starting", "stopped", "not answering"
USUAL_PORT = 9092
METRICS_APART = 312
COLUMNS = ("NODE-ID", "STATUS", "KAFKA-ADDRESS", "DATA")
_ANSWER_MS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """A node to start: its settings file and what is said beside it."""

    config: Path
    overrides: dict[str, str]
    log: Path | None = None
    """Where it says what it does, if not where every server of this place does."""

    def arguments(self) -> list[str]:
        """As kafka-server-start understands it."""
        return [str(self.config), *(f"--override={name}={value}" for name, value in self.overrides.items())]

    def expected(self) -> RunningServer:
        """What the node will be once it runs; ConfigFault if its settings cannot be."""
        from headrace.cli.server_start import describe_server
        from headrace.settings.broker import BrokerConfig

        return describe_server(BrokerConfig.load(self.config, self.overrides))


def plan_node(*, port: int | None, data: str | None) -> NodePlan:
    """A node that is a cluster of its own, broker and controller, from the sample settings."""
    directory = Path.cwd() / data if data else base_directory() / "data" / "kraft-combined-logs"
    overrides = {"log.dirs": str(directory), **metrics_settings(port or USUAL_PORT)}
    if port is not None:
        overrides |= {
            "listeners": f"PLAINTEXT://:{port},CONTROLLER://:{port + 1}",
            "advertised.listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:{port + 1}",
            "controller.quorum.voters": f"1@localhost:{port + 1}",
        }
    return NodePlan(config=sample_config("server.properties"), overrides=overrides)


def metrics_settings(port: int) -> dict[str, str]:
    """Where a node tells its metrics, by the port that its clients connect to: of 9092 on 9404, for this machine."""
    metrics = port + METRICS_APART
    return {"metrics.listener": f"127.0.0.1:{metrics}"} if metrics < 2**16 else {}


def cluster_directory(data: str | None) -> Path:
    """Where a cluster of several nodes is."""
    return Path.cwd() / data if data else base_directory() / "data" / "cluster"


def base_directory() -> Path:
    """Where data and logs go when nobody says: the project directory, or the person's own for programs' data."""
    root = project_root()
    if root is not None:
        return root
    home = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".local" / "share") / "headrace"


def find_running(expected: RunningServer) -> RunningServer | None:
    """The server of this id on this data, if one runs; it may have been given another port."""
    alike = (one for one in running_servers() if one.node_id == expected.node_id and one.data == expected.data)
    return next(alike, None)


async def answers(address: str) -> bool:
    """Whether a broker answers there, asked once."""
    return await knows(address, ())


async def knows(address: str, node_ids: Collection[int]) -> bool:
    """Whether a broker answers there and names all these as brokers that serve."""
    impatient = {"request.timeout.ms": str(_ANSWER_MS), "socket.connection.setup.timeout.ms": str(_ANSWER_MS)}
    try:
        async with Cluster(connection_options(address, impatient)) as cluster:
            metadata = await cluster.metadata(())
    except ClientFault:
        return False
    return {*node_ids} <= {broker.node_id for broker in metadata.brokers}


async def is_taken(address: str) -> bool:
    """Whether anything at all listens there."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_ANSWER_MS / 1000):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def statuses(servers: Sequence[RunningServer]) -> list[str]:
    """What each server is at."""
    return list(await asyncio.gather(*map(_status, servers)))


async def _status(server: RunningServer) -> str:
    """What a server is at, asked once: one that starts takes no connections yet, one that hangs takes them in vain."""
    if not server.address or await answers(server.address):
        # One without an address has nothing that clients could ask; it lives, or it would not be listed.
        return RUNNING
    return SILENT if is_suspended(server.pid) or await is_taken(server.address) else STARTING


def advice(server: RunningServer) -> str:
    """What to do about a server that does not answer."""
    who = f"Node {server.node_id} (process {server.pid})"
    if is_suspended(server.pid):
        return f"{who} is suspended. Let it go on with: kill -CONT {server.pid}"
    tool = shown_path(str(Path(typed_name()).with_name("kafka-server-stop")))
    return (
        f"{who} takes connections and does not answer; its log may say why. "
        f"To end it the hard way: SIGNAL=KILL {tool} --node-id {server.node_id}"
    )


def is_suspended(pid: int) -> bool:
    """Whether somebody has stopped a process with a signal or Ctrl-Z, as far as can be known here."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def shown_path(path: str) -> str:
    """A path as a person in this directory would type it."""
    try:
        near = os.path.relpath(path)
    except ValueError:  # No path at all, or one on another drive.
        return path
    return path if near.startswith("..") else near


def typed_name() -> str:
    """How to call the umbrella command from where the person is."""
    import shutil

    root = project_root()
    if root is None or shutil.which("headrace"):
        return "headrace"
    place = root / "bin" / ("windows" if os.name == "nt" else "") / "headrace"
    return shown_path(str(place))
