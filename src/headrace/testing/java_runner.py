"""One Java process that runs many programs, because starting a JVM for each would cost more than what it does.

The other side is java/Runner.java: a command goes in as one line, the exit code and what was printed come back as one.
"""

import json
import os
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headrace.testing.kafka_jars import classpath, compiled, java_command

_RUNNER_SOURCES: Final = Path(__file__).parent / "java"
_READ_BYTES: Final = 1 << 20
# Short-lived work: the quick compiler and the plain collector start faster and leave the other core to the broker.
SMALL_JVM: Final = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class JavaFailed(Exception):
    """A Java program ended with an error, or its JVM did; the message carries what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRun:
    """What one program left behind: its exit code and everything it printed."""

    code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        """The non-empty lines of its standard output."""
        return [line for line in self.out.splitlines() if line.strip()]


class JavaRunner:
    """A JVM with Kafka's jars and our Java programs on its class path, waiting for commands."""

    def __init__(self, *sources: Path, flags: tuple[str, ...] = SMALL_JVM, extra: tuple[str, ...] = ()) -> None:
        """`extra` names further sets of Kafka's jars."""
        path = classpath(compiled(_RUNNER_SOURCES, *sources, extra=extra), extra=extra)
        self._command = [java_command(), *flags, "-cp", path, "Runner"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close(), outlives this function
        self._buffer = b""
        self._process = self._started()

    def run(self, program: str, *arguments: object, timeout_s: float = 60.0) -> JavaRun:
        """Run a class's main method to its end; an exit code other than 0 is returned, not raised."""
        if self._process.poll() is not None:  # a program that hung took the JVM with it, not those after it
            self._process = self._started()
        assert self._process.stdin is not None
        command = json.dumps([program, *map(str, arguments)])
        try:
            self._process.stdin.write(command.encode() + b"\n")
        except BrokenPipeError:
            raise JavaFailed(f"the JVM is gone:\n{self._error_text()}") from None
        reply = json.loads(self._reply(program, time.monotonic() + timeout_s))
        return JavaRun(code=reply["code"], out=reply["out"], err=reply["err"])

    def check(self, program: str, *arguments: object, timeout_s: float = 60.0) -> JavaRun:
        """Like `run`, but a program that fails raises JavaFailed."""
        done = self.run(program, *arguments, timeout_s=timeout_s)
        if done.code != 0:
            raise JavaFailed(f"{program} {' '.join(map(str, arguments))} ended with {done.code}:\n{done.out}{done.err}")
        return done

    def close(self) -> None:
        """End the JVM."""
        self._end()
        self._errors.close()

    def _started(self) -> subprocess.Popen[bytes]:
        self._buffer = b""
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _reply(self, program: str, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                self._end()
                raise JavaFailed(f"{program} did not end in time")
            piece = os.read(descriptor, _READ_BYTES)
            if not piece:
                self._end()
                raise JavaFailed(f"the JVM ended while it ran {program}:\n{self._error_text()}")
            pieces.append(piece)
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line

    def _error_text(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
