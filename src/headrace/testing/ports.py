"""Ports that nobody uses, for a server that is started a moment later.

Not those the system would give: it gives the same ones to every outgoing connection, of which tests at the same time
make thousands, and one of them may be faster than the server. Workers of one test run (pytest-xdist) choose among
different ones: a server that is down for a moment finds its port free when it comes back.
"""

import os
import secrets
import socket
from pathlib import Path
from typing import Final

_FIRST: Final = 10_000
"""Below are the ports of servers that people run."""
_OUTGOING: Final = 32_768
"""From here on outgoing connections are numbered where the system does not say."""
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES_PER_PORT: Final = 1000


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """As many, all different."""
    first, last = _share(_FIRST, _first_outgoing() - 1)
    found: list[int] = []
    for _ in range(_TRIES_PER_PORT * count):
        port = first + secrets.randbelow(last - first)
        if port not in found and _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"There are no {count} free ports between {first} and {last}.")


def _share(first: int, last: int) -> tuple[int, int]:
    """The part of some ports that is this worker's, of as many as there are."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not (worker.isdecimal() and workers.isdecimal() and int(worker) < int(workers)):
        return first, last
    size = (last - first) // int(workers)
    return first + int(worker) * size, first + (int(worker) + 1) * size


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _first_outgoing() -> int:
    try:
        low = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _OUTGOING
    # Where all ports may be outgoing ones there is nothing to avoid.
    return low if low > 2 * _FIRST else _OUTGOING
