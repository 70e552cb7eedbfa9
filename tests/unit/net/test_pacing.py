"""Connections of a machine to itself are not paced, and those of others are as the system wants them."""

import asyncio
import socket

import pytest

from headrace.net.pacing import UNPACED, is_own, pace, unpace
from unit.net.listening import control_of, default_control


class Chosen:
    """A socket of which only the congestion control is asked."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        assert (socket.IPPROTO_TCP, 16) == (level, size)
        return self.name.ljust(size, b"\0")

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None:
        self.name = value


class Refusing(Chosen):
    """One that has no such thing, as one that is not TCP's."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        raise OSError("no such option")


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system has one congestion control only")
@pytest.mark.parametrize(
    ("usual", "peer", "expected"),
    [
        (b"bbr", "127.0.0.1", UNPACED),
        (b"bbr", "::1", UNPACED),
        (b"bbr", "192.0.2.7", b"bbr"),
        (b"bbr", "2001:db8::7", b"bbr"),
        (b"cubic", "127.0.0.1", b"cubic"),
        (b"cubic", "192.0.2.7", b"cubic"),
    ],
)
def test_who_is_paced(usual: bytes, peer: str, expected: bytes) -> None:
    """Is only a connection from this machine relieved of a pace, and only where there is one?"""
    listening = Chosen(usual)
    before = unpace([Refusing(b""), listening])
    connection = Chosen(listening.name)
    pace(connection, peer, before)
    assert expected == connection.name


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("fe80::1%eth0", False),
        ("10.0.0.1", False),
        ("", False),
        ("virtual", False),
    ],
)
def test_own_addresses(address: str, *, expected: bool) -> None:
    """Is an address known for one by which a machine reaches itself?"""
    assert expected is is_own(address)


@pytest.mark.skipif(not default_control().startswith(b"bbr"), reason="the system does not pace connections")
def test_a_real_listener_does_not_pace_us() -> None:
    """Does a connection over loopback begin with what does not pace, where the system's own choice would?"""
    control = control_of("127.0.0.1", lambda port: socket.create_connection(("127.0.0.1", port)))
    assert UNPACED == asyncio.run(control)
