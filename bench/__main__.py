"""`headrace bench`: rounds in which the brokers take turns, and the table they make."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bench import cluster_plan, plan, spark_plan, streams
from bench.client_workloads import EXTRAS, Clients
from bench.cluster_workloads import Loss, measure_cluster_footprint
from bench.footprint import measure_footprint
from bench.group_workloads import Commits, Copy, warm_up_groups
from bench.load import JavaLoad, Load
from bench.seats import HEADRACE, KAFKA, KAFKA_FLUSH, TITLES, Seat, running_clusters, running_seats
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
CLUSTER_PAGE: Final = _REFERENCE / "cluster-benchmarks.md"
STREAMS: Final = "streams"
"""The word that asks for the gateway's streams, which have a program and a page of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the benchmark that is run by itself: where its table goes, how often and how long it is run."""

    page: Path
    rounds: int
    budget_s: float
    warm_up_records: int = 0
    footprint: str = ""


BROKER: Final = Part(
    page=PAGE,
    rounds=plan.ROUNDS,
    budget_s=plan.BUDGET_S,
    warm_up_records=plan.WARM_UP_RECORDS,
    footprint=plan.FOOTPRINT,
)
PARTS: Final = {
    # Its workloads warm themselves up.
    spark_plan.SPARK: Part(page=SPARK_PAGE, rounds=spark_plan.ROUNDS, budget_s=spark_plan.BUDGET_S),
    cluster_plan.CLUSTER: Part(
        page=CLUSTER_PAGE,
        rounds=cluster_plan.ROUNDS,
        budget_s=cluster_plan.BUDGET_S,
        warm_up_records=cluster_plan.WARM_UP_RECORDS,
        footprint=cluster_plan.FOOTPRINT,
    ),
}
"""By the word that the names of their workloads begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line asked for."""

    rounds: int
    only: list[str]
    quick: bool
    write: bool
    alone: bool

    @property
    def part(self) -> Part:
        """The part that was asked for by its word."""
        return next((part for word, part in PARTS.items() if self._names(word)), BROKER)

    @property
    def spark(self) -> bool:
        """Whether it is Spark that is measured, which has a session of its own."""
        return self._names(spark_plan.SPARK)

    @property
    def cluster(self) -> bool:
        """Whether clusters are measured, of three brokers each."""
        return self._names(cluster_plan.CLUSTER)

    def _names(self, word: str) -> bool:
        return any(name.lower().startswith(word) for name in self.only)

    def wants(self, name: str) -> bool:
        """Whether a workload was asked for, by a part of its name."""
        return not self.only or any(part.lower() in name.lower() for part in self.only)


def main(arguments: list[str]) -> int:
    """Run the benchmark and print the table."""
    if arguments[:1] == [STREAMS]:
        return streams.main(arguments[1:])
    choice = _parse(arguments)
    # Brokers start as they do for people: from compiled modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.monotonic()
    results = Results()
    try:
        with _load(choice) as (load, with_kafka), _place() as place:
            conditions = _conditions(load, with_kafka=with_kafka)
            print(conditions)
            if choice.cluster and not isinstance(load, JavaLoad):
                raise PeerUnavailable("Clusters are measured by Java programs, and there is no Java here.")
            if choice.part.footprint and choice.wants(choice.part.footprint):
                _measure_footprints(choice, results, load, place, with_kafka=with_kafka)
            _measure_rounds(choice, results, load, place, with_kafka=with_kafka, begin=begin)
    except (BrokerFailed, ClientFault, JavaFailed, PeerUnavailable, SetupError, WrongAnswer) as failure:
        print(f"stopped: {failure}", file=sys.stderr)
        return 1
    targets = plan.TARGETS | spark_plan.SPARK_TARGETS | cluster_plan.CLUSTER_TARGETS
    short = shortfalls(results, targets)
    table = markdown(results, targets) + (f"\nNot reached:\n\n{short}" if short else "")
    print(f"\n{table}\nmeasured in {time.monotonic() - begin:.0f} s")
    if choice.write:
        write_into(choice.part.page, f"{conditions}\n\n{table}")
    return 0


def _parse(arguments: list[str]) -> Choice:
    parser = argparse.ArgumentParser(
        prog="headrace bench", description=f"Measure Headrace beside Apache Kafka {KAFKA_VERSION}."
    )
    words = " and ".join(f"`{word}`" for word in PARTS)
    parser.add_argument("name", nargs="*", default=[], metavar="NAME", help="the same as --only NAME")
    parser.add_argument("--rounds", type=int, help=f"how often the brokers take turns (default {plan.ROUNDS})")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"workloads whose name contains NAME; those of {words} are run only if they are named",
    )
    parser.add_argument("--quick", action="store_true", help="one short round, under three minutes")
    parser.add_argument("--alone", action="store_true", help="leave Apache Kafka out")
    parser.add_argument("--write", action="store_true", help="put the table into its page of docs/reference")
    chosen = parser.parse_args(arguments)
    only = [*chosen.name, *chosen.only]
    choice = Choice(rounds=0, only=only, quick=chosen.quick, write=chosen.write, alone=chosen.alone)
    return replace(choice, rounds=chosen.rounds or (plan.QUICK_ROUNDS if chosen.quick else choice.part.rounds))


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
    makers: list[tuple[str, Callable[..., BrokerProcess]]] = [(HEADRACE, HeadraceProcess)]
    if with_kafka:
        makers.append((KAFKA, KafkaPeer))
    measure = measure_footprint
    if choice.cluster:
        measure = partial(measure_cluster_footprint, kills=0 if choice.quick else cluster_plan.DEFAULT_KILLS)
    for round_number in range(1 if choice.cluster else choice.rounds):
        for seat, make in _turned(makers, round_number):
            numbers = measure(make, place / seat, load)
            _keep(results, choice.part.footprint, seat, round_number, numbers)


def _measure_rounds(
    choice: Choice, results: Results, load: Load, place: Path, *, with_kafka: bool, begin: float
) -> None:
    with _workloads(choice, place) as workloads:
        if not workloads:
            return
        with _seats(choice, place, with_kafka=with_kafka) as seats:
            if choice.part.warm_up_records:
                _warm_up(choice, workloads, seats, load)
            _run_rounds(choice, results, workloads, seats, load, begin=begin)


def _seats(choice: Choice, place: Path, *, with_kafka: bool) -> AbstractContextManager[list[Seat]]:
    if choice.cluster:
        return running_clusters(place, cluster_plan.SETTINGS, with_kafka=with_kafka)
    return running_seats(place, with_kafka=with_kafka)


def _warm_up(choice: Choice, workloads: list[Workload], seats: list[Seat], load: Load) -> None:
    records = plan.QUICK_WARM_UP_RECORDS if choice.quick else choice.part.warm_up_records
    for seat in seats:
        if not seat.flushes:
            warm_up(seat, load, records=records)
            if any(isinstance(work, (Commits, Copy)) for work in workloads):
                warm_up_groups(seat, load, records=records)


def _run_rounds(
    choice: Choice, results: Results, workloads: list[Workload], seats: list[Seat], load: Load, *, begin: float
) -> None:
    budget_s = choice.part.budget_s
    for round_number in range(choice.rounds):
        repeated_s = 0.0
        # A loss has as many kills in one round as it needs.
        for work in (work for work in workloads if not round_number or not isinstance(work, Loss)):
            work_begin = time.monotonic()
            if choice.part is not BROKER and work_begin - begin > budget_s:
                print(f"stopped before {work.name}: the time allowed is over")
                return
            _measure_turn(results, work, seats, load, round_number)
            repeated_s += 0.0 if isinstance(work, Loss) else time.monotonic() - work_begin
        if time.monotonic() - begin + repeated_s > budget_s and round_number + 1 < choice.rounds:
            print(f"stopped after round {round_number + 1}: another would exceed the time allowed")
            return


@contextmanager
def _workloads(choice: Choice, place: Path) -> Iterator[list[Workload]]:
    """What was asked for; Spark's workloads come with the application they run in."""
    if not choice.spark:
        every = cluster_plan.cluster_workloads if choice.cluster else plan.workloads
        yield _with_peers([work for work in every(quick=choice.quick) if choice.wants(work.name)])
        return
    ensure_extra("client")
    ensure_extra("spark")
    with application(place / "spark") as app:
        yield [work for work in spark_plan.spark_workloads(app, quick=choice.quick) if choice.wants(work.name)]


def _with_peers(workloads: list[Workload]) -> list[Workload]:
    """The workloads, with the clients that some of them need installed; or without those, if that cannot be done."""
    if not any(isinstance(work, Clients) for work in workloads):
        return workloads
    try:
        ensure_extra(*EXTRAS)
    except SetupError as reason:
        print(f"The Python clients are left out: {reason}", flush=True)
        return [work for work in workloads if not isinstance(work, Clients)]
    return workloads


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
