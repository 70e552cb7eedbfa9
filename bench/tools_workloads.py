"""What is measured of the command-line tools: how long a person waits for an answer, from Enter to the prompt.

Headrace's launcher is run as it is typed. Of Kafka only the Java class is run, with the flags its script gives it, so
what the script itself takes is left out, in Kafka's favour.
"""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.load import Load
from bench.seats import HEADRACE, Seat
from bench.workloads import PARTITIONS, Numbers, fresh_topic
from headrace.testing.kafka_jars import classpath, java_command

BIN: Final = Path(__file__).parent.parent / "bin"
# What kafka-run-class.sh gives a tool.
_JAVA_FLAGS: Final = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A question put to a broker by a tool that is started for it."""

    name: str
    tool: str
    java_class: str
    arguments: tuple[str, ...]
    times: int
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Seconds until the answer is there, and the tool's CPU for it, the median of several times."""
        words = ["--bootstrap-server", seat.broker.bootstrap, *self.arguments]
        if seat.name == HEADRACE:
            command = [str(BIN / f"{self.tool}.sh"), *words]
        else:
            command = [java_command(), *_JAVA_FLAGS, "-cp", classpath(), self.java_class, *words]
        with fresh_topic(seat, load, PARTITIONS):
            # The first run reads files nobody has read since they were written.
            _run(command)
            runs = [_run(command) for _ in range(self.times)]
        return {"s": median(wall for wall, _ in runs), "CPU s": median(cpu for _, cpu in runs)}


def _run(command: list[str]) -> tuple[float, float]:
    """Seconds and CPU seconds of one run that succeeds."""
    before, begin = os.times(), time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S)
    wall, after = time.monotonic() - begin, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return wall, used


def tool_workloads(*, quick: bool) -> list[Tool]:
    """One question of each kind: to the metadata, to the leaders, to the coordinators."""
    times = 3 if quick else 7
    asked = (
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", ("--list",)),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", ("--describe",)),
        ("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell", ()),
        ("kafka-consumer-groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", ("--list",)),
    )
    return [
        Tool(name=" ".join((tool, *words)), tool=tool, java_class=java_class, arguments=words, times=times)
        for tool, java_class, words in asked
    ]
