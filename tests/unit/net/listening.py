"""A listener with nothing special about it, and how the connections that come to it are paced."""

import asyncio
import socket
from collections.abc import Callable

from headrace.net.connection import Connection, Limits, Service
from headrace.net.listener import Listener
from headrace.net.reply import Buffers


def listener_of(service: Service) -> Listener:
    """One whose connections this service answers."""
    return Listener(
        service,
        name="TEST",
        limits=Limits(),
        connections_max=10,
        connections_per_address_max=10,
        on_refuse=lambda peer, reason: None,
    )


class _Curious:
    """Asks of the first connection that says something what controls its congestion."""

    def __init__(self) -> None:
        self.control: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def handle(self, connection: Connection, frame: memoryview) -> Buffers:
        sock = connection._transport.get_extra_info("socket")
        self.control.set_result(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"))
        return ()


async def control_of(address: str, connect: Callable[[int], socket.socket]) -> bytes:
    """What controls the congestion of a connection that `connect` makes to a listener on `address`, by its port."""
    curious = _Curious()
    listener = listener_of(curious)
    await listener.start(address, 0, backlog=10)
    with connect(listener.port) as client:
        client.sendall(b"\0\0\0\1?")
        control = await asyncio.wait_for(curious.control, 10)
    await listener.stop()
    return control


def default_control() -> bytes:
    """What the system would choose, empty where there is no choice."""
    with socket.socket() as one:
        if not hasattr(socket, "TCP_CONGESTION"):
            return b""
        return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
