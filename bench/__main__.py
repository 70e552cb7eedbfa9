"""`headrace bench`: rounds in which the brokers take turns, and the table they make."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from bench import plan, spark_plan
from bench.footprint import measure_footprint
from bench.group_workloads import Commits, Copy, warm_up_groups
from bench.load import JavaLoad, Load
from bench.seats import HEADRACE, KAFKA, KAFKA_FLUSH, TITLES, Seat, running_seats
from bench.spark_application import WrongAnswer, application
from bench.table import Results, markdown, number, shortfalls, write_into
from bench.workloads import Numbers, Workload, warm_up
from headrace.cli.bootstrap import SetupError
from headrace.cli.extras import ensure_extra
from headrace.client.fault import ClientFault
from headrace.testing.broker_process import BrokerFailed, BrokerProcess, HeadraceProcess
from headrace.testing.java_runner import JavaFailed
from headrace.testing.kafka_jars import KAFKA_VERSION, PeerUnavailable, cache_directory
from headrace.testing.peer import KafkaPeer

_Item = TypeVar("_Item")

_REFERENCE: Final = Path(__file__).parent.parent / "docs" / "reference"
PAGE: Final = _REFERENCE / "benchmarks.md"
SPARK_PAGE: Final = _REFERENCE / "spark-benchmarks.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line asked for."""

    rounds: int
    only: list[str]
    quick: bool
    write: bool
    alone: bool

    @property
    def spark(self) -> bool:
        """Whether it is Spark that is measured, which has a session, a budget and a page of its own."""
        return any(part.lower().startswith(spark_plan.SPARK) for part in self.only)

    @property
    def budget_s(self) -> float:
        """How long it may take."""
        return spark_plan.BUDGET_S if self.spark else plan.BUDGET_S

    def wants(self, name: str) -> bool:
        """Whether a workload was asked for, by a part of its name."""
        return not self.only or any(part.lower() in name.lower() for part in self.only)


def main(arguments: list[str]) -> int:
    """Run the benchmark and print the table."""
    choice = _parse(arguments)
    begin = time.monotonic()
    results = Results()
    try:
        with _load(choice) as (load, with_kafka), _place() as place:
            conditions = _conditions(load, with_kafka=with_kafka)
            print(conditions)
            if choice.wants(plan.FOOTPRINT):
                _measure_footprints(choice, results, load, place, with_kafka=with_kafka)
            _measure_rounds(choice, results, load, place, with_kafka=with_kafka, begin=begin)
    except (BrokerFailed, ClientFault, JavaFailed, SetupError, WrongAnswer) as failure:
        print(f"stopped: {failure}", file=sys.stderr)
        return 1
    targets = plan.TARGETS | spark_plan.SPARK_TARGETS
    short = shortfalls(results, targets)
    table = markdown(results, targets) + (f"\nNot reached:\n\n{short}" if short else "")
    print(f"\n{table}\nmeasured in {time.monotonic() - begin:.0f} s")
    if choice.write:
        write_into(SPARK_PAGE if choice.spark else PAGE, f"{conditions}\n\n{table}")
    return 0


def _parse(arguments: list[str]) -> Choice:
    parser = argparse.ArgumentParser(
        prog="headrace bench", description=f"Measure Headrace beside Apache Kafka {KAFKA_VERSION}."
    )
    parser.add_argument("--rounds", type=int, help=f"how often the brokers take turns (default {plan.ROUNDS})")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"workloads whose name contains NAME; those of `{spark_plan.SPARK}` are run only if they are named",
    )
    parser.add_argument("--quick", action="store_true", help="one short round, under three minutes")
    parser.add_argument("--alone", action="store_true", help="leave Apache Kafka out")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name} or {SPARK_PAGE.name}")
    chosen = parser.parse_args(arguments)
    choice = Choice(rounds=0, only=chosen.only, quick=chosen.quick, write=chosen.write, alone=chosen.alone)
    usual = spark_plan.ROUNDS if choice.spark else plan.ROUNDS
    return replace(choice, rounds=chosen.rounds or (plan.QUICK_ROUNDS if chosen.quick else usual))


@contextmanager
def _load(choice: Choice) -> Iterator[tuple[Load, bool]]:
    """The clients, and whether Apache Kafka is measured too."""
    missing = ""
    try:
        load: Load = JavaLoad()
    except PeerUnavailable as reason:
        missing = str(reason)
        print(f"Apache Kafka cannot be run here ({missing}); Headrace is measured alone.")
        ensure_extra("client")
        from bench.librdkafka_load import LibrdkafkaLoad  # noqa: PLC0415 - only there after the line above

        load = LibrdkafkaLoad()
    try:
        yield load, not (missing or choice.alone)
    finally:
        load.close()


@contextmanager
def _place() -> Iterator[Path]:
    """A directory for the brokers' data, in the cache rather than in /tmp, which is often no disk at all."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="bench-", dir=cache_directory()))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _measure_footprints(choice: Choice, results: Results, load: Load, place: Path, *, with_kafka: bool) -> None:
    makers: list[tuple[str, Callable[[Path], BrokerProcess]]] = [(HEADRACE, HeadraceProcess)]
    if with_kafka:
        makers.append((KAFKA, KafkaPeer))
    for round_number in range(choice.rounds):
        for seat, make in _turned(makers, round_number):
            numbers = measure_footprint(make, place / seat, load)
            _keep(results, plan.FOOTPRINT, seat, round_number, numbers)


def _measure_rounds(
    choice: Choice, results: Results, load: Load, place: Path, *, with_kafka: bool, begin: float
) -> None:
    with _workloads(choice, place) as workloads:
        if not workloads:
            return
        with running_seats(place, with_kafka=with_kafka) as seats:
            if not choice.spark:  # whose workloads warm themselves up
                _warm_up(choice, workloads, seats, load)
            _run_rounds(choice, results, workloads, seats, load, begin=begin)


def _warm_up(choice: Choice, workloads: list[Workload], seats: list[Seat], load: Load) -> None:
    records = plan.QUICK_WARM_UP_RECORDS if choice.quick else plan.WARM_UP_RECORDS
    for seat in seats:
        if not seat.flushes:
            warm_up(seat, load, records=records)
            if any(isinstance(work, (Commits, Copy)) for work in workloads):
                warm_up_groups(seat, load, records=records)


def _run_rounds(
    choice: Choice, results: Results, workloads: list[Workload], seats: list[Seat], load: Load, *, begin: float
) -> None:
    for round_number in range(choice.rounds):
        round_begin = time.monotonic()
        for work in workloads:
            if choice.spark and time.monotonic() - begin > choice.budget_s:
                print(f"stopped before {work.name}: the time allowed is over")
                return
            _measure_turn(results, work, seats, load, round_number)
        now = time.monotonic()
        if now - begin + (now - round_begin) > choice.budget_s and round_number + 1 < choice.rounds:
            print(f"stopped after round {round_number + 1}: another would exceed the time allowed")
            return


@contextmanager
def _workloads(choice: Choice, place: Path) -> Iterator[list[Workload]]:
    """What was asked for; Spark's workloads come with the application they run in."""
    if not choice.spark:
        yield [work for work in plan.workloads(quick=choice.quick) if choice.wants(work.name)]
        return
    ensure_extra("client")
    ensure_extra("spark")
    with application(place / "spark") as app:
        yield [work for work in spark_plan.spark_workloads(app, quick=choice.quick) if choice.wants(work.name)]


def _measure_turn(results: Results, work: Workload, seats: list[Seat], load: Load, round_number: int) -> None:
    """One workload, every seat in turn, each round in another order."""
    for seat in _turned(seats, round_number):
        # For information only and slow, so once is enough.
        if seat.name == KAFKA_FLUSH and round_number > 0:
            continue
        if seat.flushes and not work.depends_on_flush:
            continue
        _keep(results, work.name, seat.name, round_number, work.measure(seat, load))


def _turned(items: list[_Item], by: int) -> list[_Item]:
    by %= len(items)
    return items[by:] + items[:by]


def _keep(results: Results, workload: str, seat: str, round_number: int, numbers: Numbers) -> None:
    results.add(workload, seat, round_number, numbers)
    shown = "  ".join(f"{metric} {number(value)}" for metric, value in numbers.items())
    print(f"round {round_number + 1}  {TITLES[seat]:18} {workload}: {shown}", flush=True)


def _conditions(load: Load, *, with_kafka: bool) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores, {memory:.0f} GiB memory, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"{f'Apache Kafka {KAFKA_VERSION}, ' if with_kafka else ''}load by {load.name}; "
        f"the machine's load average before the run was {os.getloadavg()[0]:.1f}."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
