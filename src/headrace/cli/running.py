"""Which servers this person has running on this machine, so that they can be found and stopped.

Every server keeps a small file with what it is, and a lock on that file as long as it lives. A file nobody holds a lock
on belongs to a dead server and is swept away; a process id that was given to someone else is never mistaken for ours.
Servers in another container may share these files but not the numbering of processes: they are not counted here.
"""

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from headrace.cli.file_lock import try_lock

_ATTEMPTS_MAX = 50


def _process_namespace() -> str:
    """Which numbering of processes this one lives in; empty where there is only one."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """One server process."""

    node_id: int
    process_roles: str
    pid: int = field(default_factory=os.getpid)
    address: str = ""
    """What clients connect to, where the settings say it."""
    data: str = ""
    """Its log directories, separated by commas."""
    by_start: bool = False
    """Whether `headrace start` started it: `headrace stop` ends those and no others."""
    namespace: str = field(default_factory=_process_namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """One gateway process."""

    url: str
    """Where it listens first."""
    brokers: str
    """The cluster it is before, by the addresses it was told."""
    has_console: bool = True
    pid: int = field(default_factory=os.getpid)
    by_start: bool = False
    """Whether `headrace start` started it."""
    namespace: str = field(default_factory=_process_namespace)


_SERVERS, _GATEWAYS = "servers", "gateways"


def directory(kind: str = _SERVERS) -> Path:
    """Where the files are: HEADRACE_HOME, the person's state directory, or the temporary one where neither can be."""
    own, state = os.environ.get("HEADRACE_HOME"), os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path("~").expanduser() / ".local" / "state"
    place = Path(own) / "state" / kind if own else home / "headrace" / kind
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        place = Path(tempfile.gettempdir()) / f"headrace-{os.environ.get('USER', 'servers')}"
        place = place if kind == _SERVERS else place.with_name(f"{place.name}-{kind}")
        place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def registered(server: RunningServer | RunningGateway) -> Iterator[None]:
    """Be findable while the block runs."""
    kind = _SERVERS if isinstance(server, RunningServer) else _GATEWAYS
    path = directory(kind) / f"{socket.gethostname()}-{server.pid}.json"
    try:
        with path.open("w") as file:
            _lock(file)
            json.dump(asdict(server), file)
            file.flush()
            yield
    finally:
        path.unlink(missing_ok=True)


def _lock(file: IO[str]) -> None:
    """Take the lock; someone may hold it for the moment it takes to look whether the server is still there."""
    for _ in range(_ATTEMPTS_MAX):
        if try_lock(file):
            return
        time.sleep(0.01)
    raise TimeoutError(f"{file.name} stays locked by another process")


def running_servers() -> list[RunningServer]:
    """The servers that live, by process id."""
    return sorted((RunningServer(**facts) for facts in _alive(_SERVERS)), key=lambda server: server.pid)


def running_gateways() -> list[RunningGateway]:
    """The gateways that live, by process id."""
    return sorted((RunningGateway(**facts) for facts in _alive(_GATEWAYS)), key=lambda gateway: gateway.pid)


def _alive(kind: str) -> Iterator[dict[str, Any]]:
    here = _process_namespace()
    for path in directory(kind).glob(f"{socket.gethostname()}-*.json"):
        try:
            with path.open("r+") as file:
                text = file.read()
                # An empty file is a server that is just being born.
                alive = not text or not try_lock(file)
        except FileNotFoundError:
            continue
        if alive and text:
            facts = json.loads(text)
            if facts.get("namespace", here) == here:
                yield facts
        elif not alive:
            path.unlink(missing_ok=True)
