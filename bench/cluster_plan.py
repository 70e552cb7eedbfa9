"""Which workloads a cluster is given, how large they are, and what the project wants to reach with each."""

from typing import Final

from bench.cluster_workloads import CONTROLLER_KILLED, LEADER_KILLED, LEADER_STOPPED, Loss
from bench.table import Target
from bench.workloads import Latency, Produce, Workload

CLUSTER: Final = "cluster"
"""The word that asks for this part of the benchmark, which is not run without it."""
ROUNDS: Final = 2
BUDGET_S: Final = 8 * 60.0
WARM_UP_RECORDS: Final = 500_000
FOOTPRINT: Final = "cluster"
DEFAULT_KILLS: Final = 1

SETTINGS: Final = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1000",
}
"""How soon both clusters miss a node; by their defaults a broker is missed after nine seconds, whoever wrote it."""

_SMALL: Final = "cluster produce 100 B"
_LARGE: Final = "cluster produce 1 KiB"
_LATENCY: Final = "cluster latency at 1,000/s"
_KILLED: Final = "cluster leader killed"
_STOPPED: Final = "cluster leader stopped"
_CONTROLLER: Final = "cluster controller killed"


def cluster_workloads(*, quick: bool) -> list[Workload]:
    """All of them; the quick ones are a fifth as long."""
    part = 5 if quick else 1

    def produce(name: str, records: int, flushed: int, size: int) -> Produce:
        return Produce(name=name, records=records // part, flushed_records=flushed // part, record_bytes=size)

    def loss(name: str, kind: str, times: int) -> Loss:
        return Loss(name=name, kind=kind, times=1 if quick else times)

    return [
        produce(_SMALL, 1_000_000, 150_000, 100),
        produce(_LARGE, 300_000, 40_000, 1024),
        Latency(name=_LATENCY, warmup_s=3, seconds=3 if quick else 8, record_bytes=100),
        loss(_KILLED, LEADER_KILLED, 4),
        loss(_CONTROLLER, CONTROLLER_KILLED, 3),
        loss(_STOPPED, LEADER_STOPPED, 2),
    ]


CLUSTER_TARGETS: Final = {
    (FOOTPRINT, "ready s"): Target(bound=2.0, ratio=False),
    (FOOTPRINT, "idle PSS MiB"): Target(bound=250, ratio=False),
    **{(name, "records/s"): Target(bound=1.5, at_least=True) for name in (_SMALL, _LARGE)},
    **{(name, "CPU s/M records"): Target(bound=0.5) for name in (_SMALL, _LARGE)},
    (_LATENCY, "ack p99 ms"): Target(bound=1.0),
    (_KILLED, "p99 ms"): Target(bound=3000, ratio=False),
    (_CONTROLLER, "p99 ms"): Target(bound=1500, ratio=False),
    (_STOPPED, "p99 ms"): Target(bound=300, ratio=False),
}
