"""The assignors that run on the server (KIP-848), by the names that members ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.assignors.range import assign_ranges
from headrace.cores.groups.assignors.uniform import assign_uniformly

if TYPE_CHECKING:
    from headrace.cores.groups.assignors.spec import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}

_CLASS_NAMES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""What a file written for Kafka may call them."""


def served_assignors(configured: tuple[str, ...]) -> tuple[str, ...]:
    """The assignors of `group.consumer.assignors` that there are, in its order; the first is the default."""
    names = (_CLASS_NAMES.get(name, name) for name in configured)
    return tuple(name for name in names if name in ASSIGNORS) or tuple(ASSIGNORS)
