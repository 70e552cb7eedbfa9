"""The measurements of Spark: what needs no Spark to be checked."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench import plan, spark_plan
from bench.__main__ import _parse
from bench.spark_application import CONNECTOR, OURS, Application, Cost
from bench.spark_cpu import Accounts
from bench.spark_latency import quantiles_ms
from bench.spark_workloads import CPU_PART, _numbers, _part

BUSY = "import time\nwhile time.process_time() < {}: pass\n"


def application(place):
    """An application whose session is never asked."""
    return Application(spark=None, accounts=None, place=place, sources=(CONNECTOR, OURS))


def test_spark_is_measured_only_if_it_is_named():
    """Does `--only spark` choose Spark's workloads and nothing else does?"""
    assert _parse(["--only", "spark"]).spark
    assert _parse(["--only", "Spark sink"]).spark
    assert not _parse([]).spark
    assert not _parse(["--only", "fetch"]).spark
    assert not [work.name for work in plan.workloads(quick=True) if "spark" in work.name.lower()]


def test_every_workload_has_a_target(tmp_path):
    """Is each Spark workload judged by a target, and chosen by the word that asks for all of them?"""
    names = [work.name for work in spark_plan.spark_workloads(application(tmp_path), quick=True)]

    assert names == list(dict.fromkeys(workload for workload, _ in spark_plan.SPARK_TARGETS))
    assert all(_parse(["--only", "spark"]).wants(name) for name in names)


def test_turns(tmp_path):
    """Does whoever came first come second the next time?"""
    app = application(tmp_path)

    assert [app.turn() for _ in range(3)] == [(CONNECTOR, OURS), (OURS, CONNECTOR), (CONNECTOR, OURS)]
    assert app.checkpoint() != app.checkpoint()


def test_numbers_of_both():
    """Are costs shown per record and per second, and ours as a part of the connector's?"""
    costs = {CONNECTOR: Cost(seconds=2, cpu_seconds=4), OURS: Cost(seconds=1, cpu_seconds=1)}

    assert _numbers(costs, 1_000_000) == {
        "CPU µs/record": 1.0,
        "records/s": 1_000_000,
        "connector CPU µs/record": 4.0,
        "connector records/s": 500_000,
    }
    assert _part(costs, CPU_PART, lambda cost: cost.cpu_seconds) == {CPU_PART: 0.25}
    assert _part({OURS: Cost(1, 1)}, CPU_PART, lambda cost: cost.cpu_seconds) == {}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the benchmark looks at processes through /proc")
def test_cpu_of_a_family():
    """Is a grandchild that nobody waited for still counted when it has ended?"""
    grandchild = BUSY.format(0.3) + "print(flush=True); input()"
    child = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"  # as Spark's daemons do
        f"subprocess.run([sys.executable, '-c', {grandchild!r}])\n"
        "print(flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        accounts = Accounts(process.pid)
        process.stdout.readline()
        while_it_lived = accounts.seconds()
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        after = accounts.seconds()
        accounts.close()
        process.communicate(b"\n")

    assert while_it_lived >= 0.28  # the kernel counts in hundredths
    assert after >= while_it_lived
    assert 0 <= accounts.own_seconds() <= time.process_time()


def test_quantiles():
    """Are the median and the 99th percentile those of the sorted durations, also of one?"""
    assert quantiles_ms([number / 1000 for number in range(100, 0, -1)]) == {"p50": 50.0, "p99": 99.0}
    assert quantiles_ms([0.25]) == {"p50": 250.0, "p99": 250.0}
