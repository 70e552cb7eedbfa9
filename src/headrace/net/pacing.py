"""Connections of this machine to itself are not paced.

A congestion control such as BBR spreads what is sent over time, by a timer for every piece. Over a network that keeps
queues short. Over loopback there is none to keep short, and in a virtual machine every timer is a trip to the host:
without them a cold read over loopback took a quarter less of the broker's CPU (docs/reference/benchmarks.md).

The kernel takes over whether a connection is paced from the socket that listens, and never forgets it again. So those
who listen do without, and a connection from elsewhere is given what the system would have given it, before it sends.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

UNPACED = b"reno"
"""Part of every Linux, and allowed to everybody."""
_OPTION = getattr(socket, "TCP_CONGESTION", 0)
_NAME_BYTES = 16
_PACED = b"bbr"
"""What the names of those begin with that need a pace of their own."""


class Options(Protocol):
    """A socket whose options can be had; event loops hand out less than a whole one."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """The value of an option, in at most so many bytes."""

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None:
        """Change an option."""


def unpace(listening: Iterable[Options]) -> bytes:
    """Let connections to these sockets begin unpaced; answers what they would have had, empty if nothing changed."""
    usual = b""
    for one in listening:
        # Not every system has it, and not every socket is one of TCP.
        with suppress(OSError):
            name = one.getsockopt(socket.IPPROTO_TCP, _OPTION, _NAME_BYTES).rstrip(b"\0") if _OPTION else b""
            if name.startswith(_PACED):
                one.setsockopt(socket.IPPROTO_TCP, _OPTION, UNPACED)
                usual = name
    return usual


def pace(connection: Options, peer: str, usual: bytes) -> None:
    """Give a connection from another machine what `unpace` took from it."""
    if usual and not is_own(peer):
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, _OPTION, usual)


def is_own(address: str) -> bool:
    """Whether an address is one by which a machine reaches itself and nobody else."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback
