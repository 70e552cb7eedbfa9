"""A terminal for tests: a program runs on it, words are typed, and what it shows is waited for."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import time

TIMEOUT_S = 60.0


class Terminal:
    """A program on a pseudo terminal; use it as a context manager, which ends what still runs."""

    def __init__(self, command, *, environment=None, directory=None) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = ""
        # A session of its own, so that Ctrl-C typed here reaches the program.
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - the children of these tests start no threads
        )
        os.close(theirs)
        self._seen = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{text}\n".encode())

    def press(self, key: str) -> None:
        """Press Ctrl and a letter."""
        os.write(self._ours, bytes([ord(key) & 31]))

    def wait_for(self, text: str) -> None:
        """Until the text is shown, after what was waited for before."""
        end = time.monotonic() + TIMEOUT_S
        while text not in self.shown[self._seen :]:
            assert time.monotonic() < end, f"{text!r} is not shown: {self.shown!r}"
            if not self._read(0.2) and self.process.poll() is not None and not self._read(0):
                raise AssertionError(f"the program ended before it showed {text!r}: {self.shown!r}")
        self._seen = self.shown.index(text, self._seen) + len(text)

    def look(self, *, seconds: float) -> None:
        """Take in what is shown, for so long at most if it is nothing."""
        self._read(seconds)

    def finish(self) -> int:
        """Until the program ends; its exit code."""
        end = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < end, f"the program does not end: {self.shown!r}"
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._ours], [], [], timeout_s)[0]:
            return False
        # Where nobody holds the other end any more, Linux says so with an error.
        with contextlib.suppress(OSError):
            found = os.read(self._ours, 1 << 16)
            self.shown += found.decode(errors="replace").replace("\r\n", "\n")
            return bool(found)
        return False


def _take_terminal() -> None:
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
