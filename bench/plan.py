"""Which workloads are run, how large they are, and what the project wants to reach with each."""

from typing import Final

from bench.client_workloads import CLIENT_TARGETS, client_workloads
from bench.group_workloads import Commits, Copy, Stability
from bench.seats import HEADRACE_FLUSH
from bench.table import Target
from bench.tools_workloads import tool_workloads
from bench.workloads import Fetch, Latency, Produce, Tail, Workload

ROUNDS: Final = 3
QUICK_ROUNDS: Final = 1
WARM_UP_RECORDS: Final = 1_000_000
QUICK_WARM_UP_RECORDS: Final = 100_000
BUDGET_S: Final = 14 * 60.0
FOOTPRINT: Final = "footprint"

_BIG_BATCHES: Final = {"batch.size": "131072"}
# On one partition, because a request carries one batch of every partition that has one ready.
_SINGLE: Final = {"batch.size": "0", "linger.ms": "0"}


def workloads(*, quick: bool) -> list[Workload]:
    """All workloads; the quick ones are a fifth as long."""
    part = 5 if quick else 1

    def produce(
        name: str, records: int, flushed: int, size: int, properties: dict[str, str] | None = None, partitions: int = 6
    ) -> Produce:
        return Produce(
            name=f"produce {name}",
            records=records // part,
            flushed_records=flushed // part,
            record_bytes=size,
            properties=properties or {},
            partitions=partitions,
        )

    return [
        produce("100 B, default batches", 2_000_000, 300_000, 100),
        produce("100 B, 128 KiB batches", 2_000_000, 600_000, 100, _BIG_BATCHES),
        produce("1 KiB, default batches", 800_000, 80_000, 1024),
        produce("1 KiB, 128 KiB batches", 800_000, 200_000, 1024, _BIG_BATCHES),
        produce("one 100 B record per request", 80_000, 3_000, 100, _SINGLE, partitions=1),
        Fetch(name="fetch", records=800_000 // part, record_bytes=1024, passes=2),
        Tail(name="fetch tail", records=800_000 // part, flushed_records=80_000 // part, record_bytes=1024),
        Latency(name="latency at 1,000/s", warmup_s=3, seconds=4 if quick else 10, record_bytes=100),
        Commits(name="offset commits", commits=10_000 // part, flushed_commits=2_000 // part),
        *(
            Stability(name=f"10 members, one joins, {protocol}", protocol=protocol, members=10, times=1 if quick else 5)
            for protocol in ("classic", "consumer")
        ),
        Copy(
            name="copy, 100 records per transaction",
            records=50_000 // part,
            flushed_records=10_000 // part,
            record_bytes=100,
            per_transaction=100,
        ),
        *tool_workloads(quick=quick),
        *client_workloads(quick=quick),
    ]


TARGETS: Final = {
    **{
        (f"produce {kind}", "records/s"): Target(bound=1.2, at_least=True)
        for kind in (
            "100 B, default batches",
            "100 B, 128 KiB batches",
            "1 KiB, default batches",
            "1 KiB, 128 KiB batches",
            "one 100 B record per request",
        )
    },
    **{
        (f"produce {kind}", "CPU s/M records"): Target(bound=0.6)
        for kind in (
            "100 B, default batches",
            "100 B, 128 KiB batches",
            "1 KiB, default batches",
            "1 KiB, 128 KiB batches",
        )
    },
    **{("fetch", f"{kind} MB/s"): Target(bound=1.1, at_least=True) for kind in ("cold", "cached")},
    **{("fetch", f"{kind} CPU s/GB"): Target(bound=0.5) for kind in ("cold", "cached")},
    ("fetch tail", "MB/s"): Target(bound=1.1, at_least=True),
    ("latency at 1,000/s", "end p99 ms"): Target(bound=1.0),
    ("latency at 1,000/s", "ack p99 ms"): Target(bound=10.0, ratio=False, seat=HEADRACE_FLUSH),
    **{("offset commits", f"{way} commits/s"): Target(bound=1.0, at_least=True) for way in ("sync", "async")},
    **{(f"10 members, one joins, {protocol}", "ms"): Target(bound=1.0) for protocol in ("classic", "consumer")},
    ("copy, 100 records per transaction", "records/s"): Target(bound=1.0, at_least=True),
    **{(tool.name, "s"): Target(bound=0.3, ratio=False) for tool in tool_workloads(quick=True)},
    **CLIENT_TARGETS,
    (FOOTPRINT, "start s"): Target(bound=0.5, ratio=False),
    (FOOTPRINT, "idle RSS MiB"): Target(bound=80, ratio=False),
    (FOOTPRINT, "1,000 partitions RSS MiB"): Target(bound=150, ratio=False),
    (FOOTPRINT, "1,000 partitions restart s"): Target(bound=3.0, ratio=False),
}
