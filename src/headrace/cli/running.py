"""Which servers this person has running on this machine, so that they can be found and stopped.

Every server keeps a small file with what it is, and a lock on that file as long as it lives. A file nobody holds a lock
on belongs to a dead server and is swept away; a process id that was given to someone else is never mistaken for ours.
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
from typing import IO

from headrace.cli.file_lock import try_lock

_ATTEMPTS_MAX = 50


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


def directory() -> Path:
    """Where the files are: the person's state directory, or the temporary one where there is no home to write to."""
    state = os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path("~").expanduser() / ".local" / "state"
    place = home / "headrace" / "servers"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        place = Path(tempfile.gettempdir()) / f"headrace-{os.environ.get('USER', 'servers')}"
        place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def registered(server: RunningServer) -> Iterator[None]:
    """Be findable while the block runs."""
    path = directory() / f"{socket.gethostname()}-{server.pid}.json"
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
    found = []
    for path in directory().glob(f"{socket.gethostname()}-*.json"):
        try:
            with path.open("r+") as file:
                text = file.read()
                # An empty file is a server that is just being born.
                alive = not text or not try_lock(file)
        except FileNotFoundError:
            continue
        if alive and text:
            found.append(RunningServer(**json.loads(text)))
        elif not alive:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda server: server.pid)
