"""Which Spark workloads are run, how large they are, and what the project wants to reach with each."""

from typing import Final

from bench.spark_application import Application
from bench.spark_fleet import Fleet
from bench.spark_workloads import (
    CPU_PART,
    RATE_PART,
    Passing,
    Query,
    Reading,
    Writing,
    batch_windows,
    pass_through,
    stream_windows,
)
from bench.table import Target
from bench.workloads import Workload

SPARK: Final = "spark"
"""The word that asks for this part of the benchmark, which is not run without it."""
ROUNDS: Final = 1
BUDGET_S: Final = 10 * 60.0

_PASS: Final = "Spark pass-through stream"
_BATCH: Final = "Spark JSON windows, batch"
_LARGE: Final = "Spark JSON windows, 1M per micro-batch"
_SMALL: Final = "Spark JSON windows, 100k per micro-batch"
_PASSING: Final = "Spark topic to topic"
_SINK: Final = "Spark sink"


def spark_workloads(app: Application, *, quick: bool) -> list[Workload]:
    """All of them; the quick ones are a fifth as long."""
    part = 5 if quick else 1
    fleet = Fleet(app)

    warm_up_records = 500_000 // part

    def reading(name: str, records: int, query: Query) -> Reading:
        return Reading(
            name=name, records=records // part, warm_up_records=warm_up_records, query=query, app=app, fleet=fleet
        )

    return [
        reading(_PASS, 3_000_000, pass_through),
        reading(_BATCH, 3_000_000, batch_windows),
        reading(_LARGE, 3_000_000, stream_windows(1_000_000 // part)),
        reading(_SMALL, 1_500_000, stream_windows(100_000)),
        Passing(name=_PASSING, seconds=20 / part, app=app),
        Writing(name=_SINK, records=1_000_000 // part, warm_up_records=warm_up_records, app=app),
    ]


SPARK_TARGETS: Final = {
    (_PASS, CPU_PART): Target(bound=0.7, ratio=False),
    (_BATCH, CPU_PART): Target(bound=0.3, ratio=False),
    (_LARGE, CPU_PART): Target(bound=0.3, ratio=False),
    (_SMALL, CPU_PART): Target(bound=0.6, ratio=False),
    (_PASSING, "p50 ms"): Target(bound=200, ratio=False),
    (_SINK, RATE_PART): Target(bound=0.9, at_least=True, ratio=False),
}
