"""What must hold in a simulated cluster of brokers.

no promise is broken         no broker answers a writer or a reader what it only may when something acknowledged is gone
no mistake                   nobody fails to catch an exception
a disk can be read again     whatever a power cut leaves, a broker starts on it
acknowledged                 at the end each acknowledged record is at its offset, once, in the order it was written
seen is settled              what a reader saw once is what is there at the end
replicas are equal           at the end, byte for byte
metadata is equal            of any two metadata logs one is the beginning of the other, and the images are the same
all becomes well             once nothing goes wrong any more, everybody is in sync and writers finish
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from headrace.cores.controller.snapshot import snapshot_records
from headrace.sim.quorum_invariants import Violation

if TYPE_CHECKING:
    from headrace.sim.brokers import BrokersWorld
    from headrace.sim.brokers_clients import Reader, Writer

METADATA_LOG = "__cluster_metadata-0"


class Checker:
    """Looks at the cluster from outside."""

    def __init__(self, world: BrokersWorld) -> None:
        self._world = world
        self.found: Violation | None = None

    def violated(self, invariant: str, what: str) -> NoReturn:
        """Stop the run."""
        self.found = self.found or Violation(invariant, what)
        raise self.found

    def in_sync(self) -> bool:
        """Whether every replica of every partition has all of it, and everybody knows."""
        world = self._world
        if not all(machine.is_up for machine in world.machines.values()):
            return False
        brokers = [machine.broker for machine in world.machines.values() if machine.broker is not None]
        if len({broker.quorum.applied_offset for broker in brokers}) > 1:
            return False
        for topic, index in world.partitions:
            found = [broker.partitions.find((topic, index)) for broker in brokers]
            if len({one and one.log.log_end_offset for one in found}) > 1 or found[0] is None:
                return False
            state = brokers[0].metadata.topics[topic].partitions[index]
            if set(state.isr) != set(world.machines):
                return False
        return True

    def check(self, writer: Writer, along: Reader, final: Reader) -> None:
        """Check all that must hold at the end."""
        for partition in self._world.partitions:
            self._check_records(partition, writer, along, final)
            self._check_replicas("{}-{}".format(*partition))
        self._check_metadata()

    def _check_records(self, partition: tuple[str, int], writer: Writer, along: Reader, final: Reader) -> None:
        there, acked = final.seen[partition], writer.acked[partition]
        if dict(acked) != there or len(acked) != len(there):
            missing = [one for one in acked if there.get(one[0]) != one[1]]
            extra = sorted(set(there) - {offset for offset, _ in acked})
            self.violated("acknowledged", f"{partition}: missing {missing[:5]}, too many at {extra[:5]}")
        numbers = [int(value.rpartition(b":")[2]) for _, value in sorted(there.items())]
        if numbers != list(range(len(numbers))):
            self.violated("acknowledged", f"{partition}: the order is {numbers}")
        for offset, value in along.seen[partition].items():
            if there.get(offset) != value:
                self.violated("seen is settled", f"{partition} at {offset}: {value!r} became {there.get(offset)!r}")

    def _check_replicas(self, name: str) -> None:
        if len({machine.log_bytes(name) for machine in self._world.machines.values()}) > 1:
            self.violated("replicas are equal", name)

    def _check_metadata(self) -> None:
        logs = sorted((machine.log_bytes(METADATA_LOG) for machine in self._world.machines.values()), key=len)
        if not all(longer.startswith(log) for log, longer in pairwise(logs)):
            self.violated("metadata is equal", "the logs differ")
        images = [
            list(snapshot_records(machine.broker.metadata))
            for machine in self._world.machines.values()
            if machine.broker is not None
        ]
        if any(image != images[0] for image in images):
            self.violated("metadata is equal", "the images differ")
