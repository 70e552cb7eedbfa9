"""A broker process that dies at the worst moments."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from headrace.testing.broker_process import BrokerFailed, HeadraceProcess

FREEZE_S = 10.0


class Victim(HeadraceProcess):
    """Headrace as a process, with more ways to end."""

    def start_and_kill(self, after_s: float) -> None:
        """Kill it while it starts, `after_s` from now; it may be up by then or still recovering."""
        with contextlib.suppress(BrokerFailed):
            self.start(timeout_s=after_s)
        self.kill()

    def stop_and_kill(self, after_s: float) -> None:
        """Ask it to stop, and kill it `after_s` later unless it is done by then."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(after_s)
        self.kill()

    def freeze(self) -> None:
        """Let no thread of it do anything more: after a power cut there is no process left to acknowledge things.

        One that waits for the disk ("D") stops when the kernel lets it go. The kernel may tell it, in the middle of the
        cut, that a flush went well which did not; a process that runs on would believe it.
        """
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + FREEZE_S
        while not self._states() <= {"T", "D"}:
            assert time.monotonic() < deadline, f"threads are still running: {self._states()}"

    def _states(self) -> set[str]:
        states = set()
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
        return states

    def said(self, words: str) -> list[str]:
        """The lines of its output that hold these words."""
        return [line for line in self.output.read_text(errors="replace").splitlines() if words in line]

    def bugs(self) -> list[str]:
        """What no broker should ever print: a traceback, with the lines around it."""
        lines = self.output.read_text(errors="replace").splitlines()
        return [
            line for i, line in enumerate(lines) if any("Traceback" in near for near in lines[max(0, i - 25) : i + 2])
        ]
