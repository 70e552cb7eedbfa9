"""The pipelines of this machine: what they are, whether they run, and how to ask one to stop.

Each has a small file in the state directory that `headrace start` keeps its servers in too. A lock beside it is held as
long as the run lives, so a run that was killed is never taken for one that goes on, and no pipeline runs twice at once:
two runs would fight over one checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.pipeline.fault import PipelineFault
from headrace.storage.files import RealFiles, RealLock

STARTING, WAITING, RUNNING = "starting", "waiting", "running"
STOPPED, FINISHED, FAILED, LOST = "stopped", "finished", "failed", "lost"
ALIVE = (STARTING, WAITING, RUNNING)
_KEPT = (".json", ".new", ".log", ".zip", ".stop", ".lock")
"""What there is of a pipeline in the state directory."""
_ATTEMPTS_MAX, _PAUSE_S = 20, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A pipeline's newest run."""

    name: str
    file: str
    brokers: str
    master: str = ""
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    state: str = STARTING
    reason: str = ""
    """Why it failed, or what it waits for."""
    queries: Sequence[dict[str, Any]] = ()
    """The newest progress of each query, as documents."""

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.state in ALIVE


def state_directory() -> Path:
    """Where the files are: the person's state directory, or the temporary one where there is no home to write to."""
    state = os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path("~").expanduser() / ".local" / "state"
    place = home / "headrace" / "pipelines"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        place = Path(tempfile.gettempdir()) / f"headrace-{os.environ.get('USER', 'pipelines')}" / "pipelines"
        place.mkdir(parents=True, exist_ok=True)
    return place


def default_checkpoint(name: str) -> str:
    """Where a pipeline keeps what it has done when its file does not say."""
    return str(state_directory() / "checkpoints" / name)


def log_file(name: str) -> Path:
    """Where Spark writes what it has to say about a run: much, and little of it for people."""
    return state_directory() / f"{name}.log"


@contextmanager
def claimed(name: str) -> Iterator[None]:
    """Be the one run of this pipeline while the block runs."""
    lock = _take(name)
    if lock is None:
        raise PipelineFault(f"The pipeline '{name}' runs already.", f"Stop it with: headrace pipeline stop {name}")
    try:
        _stop_file(name).unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _take(name: str) -> RealLock | None:
    """The lock, tried a few times: someone may hold it for the moment it takes to look whether the run is there."""
    for _ in range(_ATTEMPTS_MAX):
        lock = RealFiles().lock(str(state_directory() / f"{name}.lock"))
        if lock is not None:
            return lock
        time.sleep(_PAUSE_S)
    return None


def save_run(run: Run) -> None:
    """Write down how a run stands; a reader sees the old or the new state, never half of one."""
    path = state_directory() / f"{run.name}.json"
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(run)))
    temporary.replace(path)


def find_run(name: str) -> Run:
    """The newest run of a pipeline; PipelineFault if it never ran here."""
    found = next((run for run in known_runs() if run.name == name), None)
    if found is None:
        known = ", ".join(run.name for run in known_runs()) or "none yet"
        raise PipelineFault(f"No pipeline '{name}' has run on this machine.", f"Known are: {known}.")
    return found


def known_runs() -> list[Run]:
    """The newest run of every pipeline of this machine, by name."""
    return sorted(filter(None, map(_load, state_directory().glob("*.json"))), key=lambda run: run.name)


def _load(path: Path) -> Run | None:
    try:
        run = Run(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    if run.is_alive and not is_claimed(run.name):
        return replace(run, state=LOST, reason="The process ended without a word.")
    return run


def forget_run(name: str) -> None:
    """Remove all that is kept of a pipeline that has ended, its default checkpoint included."""
    for suffix in _KEPT:
        (state_directory() / f"{name}{suffix}").unlink(missing_ok=True)
    shutil.rmtree(default_checkpoint(name), ignore_errors=True)


def is_claimed(name: str) -> bool:
    """Whether a run of this pipeline lives."""
    lock = RealFiles().lock(str(state_directory() / f"{name}.lock"))
    if lock is None:
        return True
    lock.release()
    return False


def ask_to_stop(name: str) -> None:
    """Leave a note that the run is to end after its batch."""
    _stop_file(name).touch()


def is_asked_to_stop(name: str) -> bool:
    """Whether somebody left that note."""
    return _stop_file(name).exists()


def _stop_file(name: str) -> Path:
    return state_directory() / f"{name}.stop"
