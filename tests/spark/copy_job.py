"""The copying application as a job that dies and comes back, and the account of what it copied."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from headrace.spark.links import links_to
from headrace.spark.option_table import sink_options
from headrace.spark.producer_settings import producer_settings
from headrace.spark.transactions import Coordinators
from spark.committed import read_committed
from spark.topics import Topics

PARTITIONS = 3
KEYS = 40
DEADLINE_S = 240.0
LOOK_EVERY_S = 0.02


class CopyJob:
    """One job over one checkpoint; a context manager that leaves no process behind."""

    def __init__(self, bootstrap: str, place: Path, *, records: int, rows_per_batch: int = 200, **options: str) -> None:
        self.counts: Counter[str] = Counter()
        self.tasks = 3
        self._bootstrap = bootstrap
        self._place = place
        self._records = records
        self._rows_per_batch = rows_per_batch
        self._options = options
        self._said = place / "copy.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions: list[int] = []

    def __enter__(self):
        with Topics(self._bootstrap) as topics:
            for name in ("in", "out"):
                topics.create(name, PARTITIONS)
            records = ({"key": b"k%d" % (n % KEYS), "value": b"%d" % n} for n in range(self._records))
            topics.send("in", records, partition=None)
        self.start()
        return self

    def __exit__(self, *_):
        for session in self._sessions:
            for pid in _session(session):
                _kill(pid)
        if self._process is not None:
            self._process.wait()

    # --- life and death

    def start(self) -> None:
        """Start the application where its checkpoint stands."""
        given = {
            "bootstrap": self._bootstrap,
            "source": "in",
            "target": "out",
            "checkpoint": str(self._place / "checkpoint"),
            "rows": str(self._rows_per_batch),
            "tasks": str(self.tasks),
            "options": self._options,
        }
        command = [sys.executable, str(Path(__file__).with_name("copy_app.py")), json.dumps(given)]
        paths = os.pathsep.join(filter(None, sys.path))
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                command, stdout=said, stderr=said, start_new_session=True, env={**os.environ, "PYTHONPATH": paths}
            )
        self._sessions.append(self._process.pid)
        self.counts["started"] += 1

    def kill_driver(self) -> None:
        """The JVM and the program that started it die; workers notice by themselves, if they do."""
        if self._process is None or self._process.poll() is not None:
            return
        for pid in [*_named(_session(self._process.pid), "java"), self._process.pid]:
            _kill(pid)
        self._process.wait()
        self.counts["driver"] += 1
        self.start()

    def kill_worker(self, chance: random.Random) -> bool:
        """One of Spark's Python workers dies; False if there is none just now."""
        if self._process is None:
            return False
        daemons = _named(_session(self._process.pid), "pyspark.daemon")
        workers = [pid for pid in daemons if _parent(pid) in daemons]
        if not workers:
            return False
        _kill(chance.choice(workers))
        self.counts["worker"] += 1
        return True

    # --- how far it is

    def batches(self) -> int:
        """How many batches are done."""
        commits = self._place / "checkpoint" / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

    def ends(self) -> set[int]:
        """How many records there are after each batch that was planned."""
        plans = [path for path in (self._place / "checkpoint" / "offsets").iterdir() if path.name.isdigit()]
        return {sum(json.loads(path.read_text().splitlines()[-1])["in"].values()) for path in plans} | {0}

    def seen(self) -> int:
        """How many records readers see."""
        return len(read_committed(self._bootstrap, "out", PARTITIONS))

    def fence(self) -> None:
        """Abort every open transaction of the query, as its coordinator does when time is up."""
        query_id = json.loads((self._place / "checkpoint" / "metadata").read_text())["id"]
        options = sink_options({"kafka.bootstrap.servers": self._bootstrap, "topic": "out"})
        coordinators = Coordinators(links_to(options.connection), producer_settings(options))
        for task in range(self.tasks):
            coordinators.identify(f"{options.transactional_id_prefix}-{query_id}-{task}")

    def wait_for_batches(self, number: int) -> None:
        """Until so many more batches are done, or all."""
        goal = self.batches() + number
        self.wait(lambda: self.batches() >= goal or self.is_done(), f"{number} more batches did not come")

    def is_done(self) -> bool:
        """Whether the application ended because all is copied."""
        return self._process is not None and self._process.poll() == 0

    def wait(self, is_so, complaint: str) -> None:
        """Look until something is so; an application that failed is started again, as a person would."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            assert time.monotonic() < deadline, f"{complaint}: {self.batches()} batches, {self.counts}\n{self.tail()}"
            if self._process is not None and self._process.poll() not in {None, 0}:
                self.counts["failed"] += 1
                assert self.counts["failed"] < 20, self.tail()
                self.start()
            time.sleep(LOOK_EVERY_S)

    def settle(self) -> None:
        """Until everything is copied."""
        self.wait(self.is_done, "not all was copied")

    def tail(self) -> str:
        """The last things the applications said."""
        return self._said.read_text(errors="replace")[-6_000:]

    # --- the account

    def account(self) -> str:
        """Assert that every record is in the target once, those of a key in order; the figures of the run."""
        seen = read_committed(self._bootstrap, "out", PARTITIONS)
        numbers = Counter(int(one.value) for one in seen)
        missing = [number for number in range(self._records) if number not in numbers]
        twice = [number for number, times in numbers.items() if times > 1]
        assert (missing, twice) == ([], []), f"{len(missing)} missing, {len(twice)} twice: {missing[:5]} {twice[:5]}"
        last: dict[bytes | None, int] = {}
        for one in seen:
            assert last.get(one.key, -1) < int(one.value), f"{one.key} is out of order"
            last[one.key] = int(one.value)
        return f"{len(seen)} records in {self.batches()} batches, {dict(self.counts)}"


def _session(leader: int) -> list[int]:
    """The processes that descend from one we started: its session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def _named(pids: list[int], word: str) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "):
                found.append(pid)
    return found


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
