"""The programs a demo runs: started, watched, started again if they die, and ended whatever happens.

Each is the first of a session of its own, so Ctrl-C on the terminal reaches only the demo, which then ends them in
order. Where the system can, they are told to end if the demo itself is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

RESTARTS_MAX = 20
"""How often a program may die before we believe that it cannot live."""
_STOP_S = 60.0
_LAST_WORDS_LINES = 15
_PR_SET_PDEATHSIG = 1
_PAUSE_S = 0.05


class ChildDied(Exception):
    """A program ended that should not have; the message says which, and its last words."""


class Child:
    """One program."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        may_restart: bool = False,
        shows: bool = False,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.restarts = 0
        self._command = list(command)
        self._directory = directory
        self._environment = dict(environment)
        self._may_restart = may_restart
        self._shows = shows
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-_LAST_WORDS_LINES:] if self.log.exists() else []
        return "\n".join(f"  {line}" for line in lines)

    def revive(self) -> bool:
        """Start it again if it died and may be; whether it did. ChildDied if it may not."""
        if self.is_alive:
            return False
        if not self._may_restart or self.restarts >= RESTARTS_MAX:
            raise ChildDied(f"The {self.name} ended with exit code {self.exit_code}:\n{self.last_words()}")
        self.restarts += 1
        self._sweep()
        self._process = self._start()
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; whether it came."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_end(self) -> None:
        """Let it finish what it is at."""
        if self.is_alive:
            self._process.terminate()

    def end(self, timeout_s: float = _STOP_S) -> None:
        """Ask it to end, then make it; afterwards neither it nor what it started is there."""
        self.ask_to_end()
        if not self.wait(timeout_s):
            self._process.kill()
            self._process.wait()
        self._sweep()

    def _sweep(self) -> None:
        """End what it has left behind in its session."""
        if sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=None if self._shows else log,
                stderr=log,
                cwd=self._directory,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_end_with_parent() if sys.platform == "linux" else None,  # noqa: PLW1509 - we have no threads
            )


def _end_with_parent() -> Callable[[], None]:
    """What a child calls first, so that it hears of our death even where we cannot tell it."""
    import ctypes

    control = ctypes.CDLL(None).prctl
    return lambda: control(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Children:
    """All programs of a demo; leaving the context ends the newest first."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all of them, the newest first."""
        while self._children:
            self._children[-1].end()
            self._children.pop()

    def start(self, name: str, command: Sequence[str], *, may_restart: bool = False, shows: bool = False) -> Child:
        """Start a program; what it says goes to NAME.log."""
        child = Child(
            name,
            command,
            directory=self._directory,
            environment=self._environment,
            may_restart=may_restart,
            shows=shows,
        )
        self._children.append(child)
        return child

    def pids(self) -> dict[str, int]:
        """Who runs under which process id."""
        return {child.name: child.pid for child in self._children if child.is_alive}


def wait_until(done: Callable[[], bool], watch: Callable[[], object], *, timeout_s: float) -> bool:
    """Look at the programs until something is so; False if it takes too long."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        watch()
        time.sleep(_PAUSE_S)
    return True
