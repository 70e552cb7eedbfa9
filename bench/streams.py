"""`headrace bench streams`: a thousand clients of the Stream API on one gateway process.

Four processes: a broker, a gateway, the clients, and this one, which writes the records and watches the gateway.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from bench.table import number, write_into
from headrace.cli.extras import ensure_extra
from headrace.testing.broker_process import BrokerFailed, HeadraceProcess
from headrace.testing.ports import free_port
from headrace.testing.probe import answers

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "stream-benchmarks.md"
CLIENTS: Final = 1000
SECONDS: Final = 20.0
PARTITIONS: Final = 8
P99_MS: Final = 100.0
_SETTLE_S: Final = 1.0
_OPEN_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 20.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is written, and what the clients ask for."""

    name: str
    records_per_s: float
    query: str
    """Each client's, with `{n}` for its number."""
    deliveries_per_record: float
    """How many clients want a record."""
    deaf: int = 0
    """How many more clients ask for all and read nothing."""
    target: bool = False


WORKLOADS: Final = (
    Workload(name="a key each", records_per_s=1000, query="key=t-{n}", deliveries_per_record=1, target=True),
    Workload(name="all see all, 1/s", records_per_s=1, query="", deliveries_per_record=CLIENTS, target=True),
    Workload(
        name="a filter each", records_per_s=5, query="filter=value.fifth%3D%3D0", deliveries_per_record=CLIENTS * 0.2
    ),
    Workload(name="all see all, 5/s", records_per_s=5, query="", deliveries_per_record=CLIENTS),
    Workload(name="a key each, 5/s", records_per_s=5000, query="key=t-{n}", deliveries_per_record=1),
    Workload(name="a key each, 20 deaf", records_per_s=1000, query="key=t-{n}", deliveries_per_record=1, deaf=20),
)


class GatewayProcess:
    """`headrace gateway` before a broker; a context manager."""

    def __init__(self, bootstrap: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "headrace.cli", "gateway", "--bootstrap-server", bootstrap]
        command += ["--listen", f"http://{_HOST}:{self.port}", "--no-console"]
        for setting in ("stream.stall.ms=5000", f"streams.max={4 * CLIENTS}", f"streams.max.per.address={4 * CLIENTS}"):
            command += ["--set", setting]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + _OPEN_TIMEOUT_S
        while True:
            try:
                socket.create_connection((_HOST, self.port), 1).close()
                return self
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise BrokerFailed("The gateway did not start.") from None
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise BrokerFailed("The gateway did not stop.") from None

    def cpu_s(self) -> float:
        """User and system time so far."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = text[text.rindex(")") + 2 :].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mib(self) -> float:
        """Memory now."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


@contextmanager
def _clients(gateway: GatewayProcess, topic: str, work: Workload, seconds: float) -> Iterator[subprocess.Popen[str]]:
    path = f"/stream/{topic}" + (f"?{work.query}" if work.query else "")
    command = [sys.executable, "-m", "bench.stream_clients", _HOST, str(gateway.port), str(CLIENTS), str(seconds), path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise BrokerFailed("The clients could not open their streams.")
        yield process
    finally:
        process.kill()
        process.wait()


def _deaf(gateway: GatewayProcess, topic: str) -> socket.socket:
    """A client that asks and reads nothing."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((_HOST, gateway.port))
    made.sendall(f"GET /stream/{topic}?since=earliest HTTP/1.1\r\nHost: {_HOST}\r\n\r\n".encode())
    return made


def _write(bootstrap: str, topic: str, rate: float, seconds: float) -> int:
    """Records at an even pace, each with the time at which it was handed over; how many."""
    from confluent_kafka import Producer  # noqa: PLC0415 - only there once the extra is

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    begin = time.monotonic()
    count = round(rate * seconds)
    for n in range(count):
        pause_s = begin + n / rate - time.monotonic()
        if pause_s > 0:
            producer.poll(0)
            time.sleep(pause_s)
        key = f"t-{n % CLIENTS}"
        value = b'{"at":%d,"fifth":%d,"truck":"%s","speed_kmh":83.5,"lat":48.13712,"lon":11.57549}'
        producer.produce(topic, value % (time.time_ns(), n % 5, key.encode()), key, n % PARTITIONS)
    producer.flush(10)
    return count


def measure(bootstrap: str, work: Workload, seconds: float) -> dict[str, float]:
    """One workload on a gateway of its own."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - only there once the extra is
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

    topic = "bench-" + "".join(letter if letter.isalnum() else "-" for letter in work.name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)]).values():
        made.result(30)
    with GatewayProcess(bootstrap) as gateway:
        idle_mib = gateway.rss_mib()
        with _clients(gateway, topic, work, seconds + 2 * _SETTLE_S) as clients:
            deaf = [_deaf(gateway, topic) for _ in range(work.deaf)]
            open_mib = gateway.rss_mib()
            time.sleep(_SETTLE_S)
            cpu_s, begin = gateway.cpu_s(), time.monotonic()
            written = _write(bootstrap, topic, work.records_per_s, seconds)
            took_s = time.monotonic() - begin
            cpu_s = gateway.cpu_s() - cpu_s
            rss_mib = gateway.rss_mib()
            out, _ = clients.communicate(timeout=60)
        for one in deaf:
            one.close()
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    return {
        "deliveries/s": found["deliveries"] / took_s,
        "lost": written * work.deliveries_per_record - found["deliveries"],
        "p50 ms": found.get("p50", 0.0),
        "p99 ms": found.get("p99", 0.0),
        "p99.9 ms": found.get("p99.9", 0.0),
        "CPU %": 100 * cpu_s / took_s,
        "CPU µs/delivery": 1e6 * cpu_s / max(found["deliveries"], 1),
        "idle MiB": idle_mib,
        "open MiB": open_mib,
        "RSS MiB": rss_mib,
    }


def _table(results: list[tuple[Workload, dict[str, float]]]) -> str:
    names = list(results[0][1])
    head = ["1,000 clients", *names, f"p99 < {P99_MS:g} ms"]
    lines = [_line(head), _line(["---", *["--:"] * len(names), ":-:"])]
    short = []
    for work, numbers in results:
        met = numbers["p99 ms"] < P99_MS and numbers["lost"] == 0
        lines.append(_line([work.name, *(number(numbers[name]) for name in names), "yes" if met else "**no**"]))
        if not met:
            wanted = "the target" if work.target else "beyond the target"
            late, lost = number(numbers["p99 ms"]), number(numbers["lost"])
            short.append(f"- {work.name} ({wanted}): p99 {late} ms, {lost} not delivered\n")
    return "\n".join(lines) + "\n" + (f"\nNot reached:\n\n{''.join(short)}" if short else "")


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="headrace bench streams", description="Measure the gateway's streams.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    chosen = parser.parse_args(arguments)
    ensure_extra("client", "gateway")
    conditions = (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {chosen.seconds:g} s each; the machine's load average before the run was "
        f"{os.getloadavg()[0]:.1f}{f', with a niceness of {os.nice(0)}' if os.nice(0) else ''}."
    )
    results = []
    with tempfile.TemporaryDirectory(prefix="headrace-streams-") as place, HeadraceProcess(Path(place) / "b") as broker:
        assert answers(broker.port)
        for work in WORKLOADS:
            if chosen.only in work.name:
                numbers = measure(broker.bootstrap, work, chosen.seconds)
                results.append((work, numbers))
                print(
                    f"{work.name}: " + "  ".join(f"{name} {number(value)}" for name, value in numbers.items()),
                    flush=True,
                )
    table = _table(results)
    print(f"\n{conditions}\n\n{table}")
    if chosen.write:
        write_into(PAGE, f"{conditions}\n\n{table}")
    return 0
