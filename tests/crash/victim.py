"""A broker process that dies at the worst moments."""

import contextlib
import os
import signal
import subprocess

from headrace.testing.broker_process import BrokerFailed, HeadraceProcess


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

    def said(self, words: str) -> list[str]:
        """The lines of its output that hold these words."""
        return [line for line in self.output.read_text(errors="replace").splitlines() if words in line]

    def bugs(self) -> list[str]:
        """What no broker should ever print: a traceback, with the lines around it."""
        lines = self.output.read_text(errors="replace").splitlines()
        return [
            line for i, line in enumerate(lines) if any("Traceback" in near for near in lines[max(0, i - 25) : i + 2])
        ]
