"""One broker as an operating system process: started, watched from outside through /proc, stopped by its pid.

Headrace and Apache Kafka are started from the same `server.properties` and looked at with the same eyes, so that what
a test or a benchmark says about one can be said about the other.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headrace.testing.ports import free_port
from headrace.testing.probe import answers

START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 60.0
FORMAT_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.002
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_LOG_TAIL_LINES: Final = 20

# What Kafka's own sample for a combined node sets, with addresses and directory filled in.
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={log_dir}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


class BrokerFailed(Exception):
    """The broker process ended or never answered; the message carries the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a process occupies: all resident pages, its fair share of them, and those that no file backs."""

    rss_bytes: int
    pss_bytes: int
    anonymous_bytes: int


class BrokerProcess(ABC):
    """A broker started from a directory of its own: `server.properties`, `data/` and `server.out` live in it."""

    name: str
    host = "127.0.0.1"
    """Where it is reached."""

    def __init__(self, directory: Path, *, settings: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.log_dir = directory / "data"
        self.properties = directory / "server.properties"
        self.output = directory / "server.out"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        text = _PROPERTIES.format(port=self.port, controller_port=free_port(), log_dir=self.log_dir)
        text += "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
        self.properties.write_text(text)

    @abstractmethod
    def command(self) -> list[str]:
        """The command line that runs the broker in the foreground."""

    @abstractmethod
    def format(self, cluster_id: str = "") -> None:
        """Prepare an empty log directory, for a cluster of its own unless one is named."""

    @property
    def bootstrap(self) -> str:
        """The address clients are given."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> float:
        """Start the broker and wait until it answers a request; the seconds that took."""
        assert self._process is None, "the broker is already running"
        with self.output.open("ab") as output:
            begin = time.monotonic()
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        while not answers(self.port, host=self.host):
            if self._process.poll() is not None or time.monotonic() - begin > timeout_s:
                self.kill()
                raise BrokerFailed(f"{self.name} did not start:\n{self.output_tail()}")
            time.sleep(_POLL_S)
        return time.monotonic() - begin

    def stop(self) -> float:
        """Ask the broker to shut down (SIGTERM) and wait for it; the seconds that took."""
        if self._process is None:
            return 0.0
        begin = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"{self.name} did not stop within {STOP_TIMEOUT_S:.0f} s") from None
        self._process = None
        return time.monotonic() - begin

    def kill(self) -> None:
        """End the process at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def cpu_seconds(self) -> float:
        """User and system time the process and its threads have used so far."""
        text = Path(f"/proc/{self.pid}/stat").read_text()
        fields = text[text.rindex(")") + 2 :].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def disk_read_bytes(self) -> int:
        """Bytes the process has caused to be read from the storage device, 0 where the kernel does not say."""
        try:
            return _kernel_fields(Path(f"/proc/{self.pid}/io")).get("read_bytes", 0)
        except PermissionError:
            return 0

    def memory(self) -> Memory:
        """What the process occupies now."""
        status = _kernel_fields(Path(f"/proc/{self.pid}/status"))
        shares = _kernel_fields(Path(f"/proc/{self.pid}/smaps_rollup"))
        return Memory(
            rss_bytes=status["VmRSS"] * 1024,
            pss_bytes=shares["Pss"] * 1024,
            anonymous_bytes=status["RssAnon"] * 1024,
        )

    def output_tail(self) -> str:
        """The last lines the broker printed."""
        return "\n".join(self.output.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])

    def remove(self) -> None:
        """Stop the broker, whatever state it is in, and delete its directory."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.format()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class HeadraceProcess(BrokerProcess):
    """Headrace, run by the interpreter that runs us."""

    name = "headrace"

    def command(self) -> list[str]:
        """The server command without its launcher, as the peer is started without its shell script."""
        return [sys.executable, "-m", "headrace.cli", "server", "start", str(self.properties)]

    def format(self, cluster_id: str = "") -> None:
        """Nothing for a broker alone, whose first start formats; by the storage tool for a cluster."""
        if not cluster_id:
            return
        command = [sys.executable, "-m", "headrace.cli", "kafka-storage", "format"]
        command += [f"--cluster-id={cluster_id}", "--config", str(self.properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise BrokerFailed(f"kafka-storage failed:\n{done.stdout}{done.stderr}")


def _kernel_fields(path: Path) -> dict[str, int]:
    """The numeric lines of a /proc file in `Name: number [unit]` form."""
    fields: dict[str, int] = {}
    for line in path.read_text().splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            fields[key] = int(words[0])
    return fields
