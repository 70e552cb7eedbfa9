"""zookeeper-server-start: the first command of every older tutorial.

A cluster here keeps its metadata itself, so there is nothing to start: the command says so, names the next one and
succeeds, and the tutorial goes on (decision 8).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.settings.fault import ConfigFault
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str], program: str) -> int:
    """Read the file as ZooKeeper's script would, and say what to do instead."""
    rest = arguments[1:] if arguments[:1] == ["-daemon"] else arguments
    if not rest or rest[0] == "--help":
        print(f"USAGE: {program} [-daemon] zookeeper.properties")
        return 1
    try:
        load_properties(rest[0])
    except ConfigFault as fault:
        print(fault, file=sys.stderr)
        return 1
    print(
        "This cluster needs no ZooKeeper, and none was started; go on with: "
        f"{_neighbour(program, 'kafka-server-start')} config/server.properties",
        file=sys.stderr,
    )
    return 0


def _neighbour(program: str, name: str) -> str:
    """Another launcher of the same kind, where the person finds it."""
    path = Path(program)
    return str(path.with_name(name + path.suffix))
