"""What only a cluster can be asked: how long it takes to be there, what it costs at rest, and the loss of a node.

Java programs end the node and take the time, so that the same client sees the loss that ran the load before it.
"""

import time
from dataclasses import dataclass
from itertools import count
from math import ceil
from pathlib import Path
from typing import Final

from bench.cluster_process import ClusterProcess, Maker
from bench.load import Load
from bench.seats import Seat
from bench.workloads import Numbers

LEADER_KILLED: Final = "leader-kill"
LEADER_STOPPED: Final = "leader-stop"
CONTROLLER_KILLED: Final = "controller-kill"

# One for each node to lead, so that there is always one whose leader is not the active controller.
_PARTITIONS: Final = 3
_SETTLE_S: Final = 2.0
_MEBIBYTE: Final = 1024 * 1024
_NAMES: Final = (f"bench-loss-{number}" for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A node is ended and brought back, several times."""

    name: str
    kind: str
    times: int
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Percentiles of how long the cluster did not do what was asked of it, in milliseconds."""
        assert isinstance(seat.broker, ClusterProcess)
        topic = next(_NAMES)
        load.create_topic(seat.broker.bootstrap, topic, _PARTITIONS, seat.topic_settings)
        stalls = [lose(seat.broker, load, self.kind, topic) for _ in range(self.times)]
        load.delete_topic(seat.broker.bootstrap, topic)
        return {"p50 ms": percentile(stalls, 0.5), "p99 ms": percentile(stalls, 0.99)}


def lose(cluster: ClusterProcess, load: Load, kind: str, topic: str) -> float:
    """End the node that plays a part, bring it back, and tell how long it was missed, in milliseconds."""
    node, stall_ms = load.lose(cluster.bootstrap, topic, kind=kind, nodes=cluster.pids, new_topic=next(_NAMES))
    cluster.start_again(node)
    return stall_ms


def measure_cluster_footprint(make: Maker, place: Path, load: Load, *, kills: int) -> Numbers:
    """A new cluster with its own timeouts: until its first topic is there, its memory, and the loss of a leader."""
    cluster = ClusterProcess(make, place)
    try:
        cluster.format()
        begin = time.monotonic()
        cluster.start()
        load.create_first_topic(cluster.bootstrap, next(_NAMES))
        numbers: Numbers = {"ready s": time.monotonic() - begin}
        time.sleep(_SETTLE_S)
        numbers["idle PSS MiB"] = cluster.pss_bytes() / _MEBIBYTE
        if kills:
            topic = next(_NAMES)
            load.create_topic(cluster.bootstrap, topic, _PARTITIONS, {})
            stalls = [lose(cluster, load, LEADER_KILLED, topic) for _ in range(kills)]
            numbers["leader killed, default timeouts ms"] = percentile(stalls, 0.5)
    finally:
        cluster.remove()
    return numbers


def percentile(values: list[float], part: float) -> float:
    """The value that this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]
