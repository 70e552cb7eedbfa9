"""Kafka Connect, standalone, carries a file's lines through a topic into another file."""

import signal
import subprocess
from pathlib import Path

import pytest

from clients.java.live_clients import until
from headrace.testing.java_runner import SMALL_JVM
from headrace.testing.kafka_jars import STREAMS_AND_CONNECT, PeerUnavailable, classpath, java_command

COPY_S = 90
"""A worker that has just been started: it loads all of Connect first, which takes a busy machine half a minute."""
STOP_S = 60
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class Connect:
    """A standalone worker with a file source and a file sink."""

    def __init__(self, directory: Path, bootstrap: str, topic: str) -> None:
        self.source, self.sink = directory / "source.txt", directory / "sink.txt"
        self._output = directory / "connect.out"
        self._process: subprocess.Popen[bytes] | None = None
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "offset.storage.file.filename": directory / "offsets",
            "offset.flush.interval.ms": 200,
            "listeners": "http://127.0.0.1:0",
        }
        source = {"name": f"{topic}-source", "connector.class": "FileStreamSource", "file": self.source, "topic": topic}
        sink = {"name": f"{topic}-sink", "connector.class": "FileStreamSink", "file": self.sink, "topics": topic}
        self._arguments = []
        for name, settings in (("worker", worker), ("from", source), ("to", sink)):
            file = directory / f"{name}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            self._arguments.append(str(file))

    def start(self) -> None:
        """Start the worker; its connectors begin by themselves."""
        path = classpath(extra=(STREAMS_AND_CONNECT,))
        program = "org.apache.kafka.connect.cli.ConnectStandalone"
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [java_command(), *SMALL_JVM, "-cp", path, program, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        """Let it flush and end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(STOP_S)
            self._process = None

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def copied(self) -> list[str]:
        """The lines that have come out."""
        assert self._process is not None
        assert self._process.poll() is None, self._output.read_text()[-3000:]
        return self.sink.read_text().splitlines() if self.sink.exists() else []


@pytest.fixture
def connect(java, broker, topic, tmp_path):
    """A worker between two files, not started yet, and its topic."""
    name = topic()
    try:
        classpath(extra=(STREAMS_AND_CONNECT,))
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    worker = Connect(tmp_path, broker.bootstrap, name)
    yield worker, name
    worker.kill()


def test_file_to_file(connect, group_admin):
    """Does every line come out once and in order, also after the worker was restarted, with its offsets committed?"""
    worker, topic = connect
    lines = [f"line {number}" for number in range(300)]
    sink_group = f"connect-{topic}-sink"

    worker.source.write_text("".join(f"{line}\n" for line in lines[:200]))
    worker.start()
    until(worker.copied, lambda seen: len(seen) >= 200, "the first lines come out", within_s=COPY_S)
    assert group_admin("list")[sink_group] == ["Classic", "consumer", "Stable"]
    worker.stop()
    assert group_admin("offsets", sink_group) == {f"{topic}-0": [200, ""]}
    with worker.source.open("a") as file:
        file.writelines(f"{line}\n" for line in lines[200:])
    worker.start()
    seen = until(worker.copied, lambda seen: len(seen) >= 300, "the rest comes out", within_s=COPY_S)
    worker.stop()

    assert lines == seen
    assert group_admin("offsets", sink_group) == {f"{topic}-0": [300, ""]}
