"""One end of a simulated TCP connection: bytes arrive in order, in any pieces, late or never.

What leaves is a line of parcels: bytes, then perhaps the end of them (a FIN), or at any time a reset, which overtakes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.sim.process import Process
    from headrace.sim.virtual_network import VirtualNetwork

UNSENT_BYTES_MAX = 256 * 1024
"""Above this a writer is asked to wait."""
FIN, RESET = b"", None
"""What is sent when there is nothing more to say, and when the connection is over."""
Parcel = bytes | None


class VirtualTransport(asyncio.Transport):
    """What a process holds of a connection."""

    def __init__(self, network: VirtualNetwork, process: Process, number: int, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.process = process
        self.number = number
        self.peer: VirtualTransport
        self.outgoing: deque[Parcel] = deque()
        """Sent by the process and not yet there."""
        self.is_travelling = False
        """Whether the first of them is on its way."""
        self.is_open = True
        """Whether the process still holds its end."""
        self._network = network
        self._protocol: asyncio.BaseProtocol
        self._arrived: deque[Parcel] = deque()
        self._is_reading = True
        self._is_feeding = False
        self._is_closing = False
        self._is_choked = False

    # --- the process's side

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        if self._is_closing or not self.is_open or not data:
            return
        self._network.send(self, bytes(data))
        if not self._is_choked and self.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self._is_choked = True
            cast("asyncio.Protocol", self._protocol).pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send pieces as one."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Bytes that are not there yet."""
        return sum(len(parcel) for parcel in self.outgoing if parcel)

    def close(self) -> None:
        """Say nothing more, and hear nothing more."""
        if not self._is_closing and self.is_open:
            self._is_closing = True
            self._network.send(self, FIN)
            self._lose(None)

    def abort(self) -> None:
        """Break the connection off."""
        if self.is_open:
            self._is_closing = True
            self._network.send(self, RESET)
            self._lose(None)

    def is_closing(self) -> bool:
        """Whether it is being closed, or is."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Leave in the kernel what comes."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Take up what came meanwhile."""
        self._is_reading = True
        self._feed_soon()

    def is_reading(self) -> bool:
        """Whether what comes is taken."""
        return self._is_reading and not self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Whom to tell."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who is told."""
        return self._protocol

    # --- the network's side

    def arrive(self, parcel: Parcel) -> None:
        """Something reached this end's host, whose process gets it in its turn."""
        if parcel is RESET:
            self._arrived.clear()
            self._is_reading = True
        self._arrived.append(parcel)
        self._feed_soon()

    def sent(self) -> None:
        """Something left this end's host for good."""
        if self._is_choked and self.is_open and self.get_write_buffer_size() <= UNSENT_BYTES_MAX // 4:
            self._is_choked = False
            self._network.loop.call_soon(
                cast("asyncio.Protocol", self._protocol).resume_writing, context=self.process.context
            )

    def _feed_soon(self) -> None:
        if not self._is_feeding and self._arrived and self._is_reading and self.is_open:
            self._is_feeding = True
            self._network.loop.call_soon(self._feed, context=self.process.context)

    def _feed(self) -> None:
        self._is_feeding = False
        if not (self._arrived and self._is_reading and self.is_open):
            return
        parcel = self._arrived.popleft()
        if parcel is RESET:
            self._is_closing = True
            self._lose(ConnectionResetError("the connection was reset"))
        elif parcel == FIN:
            if not cast("asyncio.Protocol", self._protocol).eof_received():
                self.close()
        else:
            self._give(parcel)
        self._feed_soon()

    def _give(self, data: bytes) -> None:
        """Hand bytes to the protocol, as many at a time as it has room for."""
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            cast("asyncio.Protocol", protocol).data_received(data)
            return
        room = memoryview(protocol.get_buffer(-1))
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        room.release()
        if taken < len(data):
            self._arrived.appendleft(data[taken:])
        protocol.buffer_updated(taken)

    def _lose(self, cause: Exception | None) -> None:
        self.is_open = False
        self._arrived.clear()
        self._network.loop.call_soon(self._protocol.connection_lost, cause, context=self.process.context)
