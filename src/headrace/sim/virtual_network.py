"""The wires between hosts: connections that are slow, hang in one direction, break, or find nobody at home.

A cut swallows nothing: what is sent over it waits, as TCP sends again, and goes on or breaks when it is healed.
A host without power answers nothing at all; one that has been restarted resets what it knows nothing of.
"""

from __future__ import annotations

import asyncio
import errno
import zlib
from typing import TYPE_CHECKING, NamedTuple

from headrace.sim.virtual_transport import RESET, Parcel, VirtualTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.process import Process
    from headrace.sim.virtual_loop import VirtualLoop

    Factory = Callable[[], asyncio.BaseProtocol]

_SYN_AGAIN_S = 1.0
_SPLIT = 0.05
"""How often bytes arrive in two pieces."""
_LATE = 0.03


class _Socket(NamedTuple):
    """As much of a socket as a listener asks for."""

    address: tuple[str, int]

    def getsockname(self) -> tuple[str, int]:
        """The bound address."""
        return self.address

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """It has no options."""
        raise OSError(errno.ENOPROTOOPT, "a virtual socket has no options")


class VirtualServer:
    """A bound address."""

    def __init__(self, network: VirtualNetwork, process: Process, factory: Factory, port: int) -> None:
        self.process = process
        self.factory = factory
        self.is_serving = False
        self._network = network
        self._address = (process.host, port)

    @property
    def sockets(self) -> tuple[_Socket]:
        """What is bound."""
        return (_Socket(self._address),)

    async def start_serving(self) -> None:
        """Let others in."""
        self.is_serving = True

    def close(self) -> None:
        """Let nobody in any more."""
        self.is_serving = False
        self._network.unbind(self._address, self)


class VirtualNetwork:
    """All connections of a run."""

    def __init__(self, loop: VirtualLoop, say: Callable[[str], None]) -> None:
        self.loop = loop
        self.break_chance = 0.0
        """How often a parcel breaks its connection instead of arriving."""
        self.delay_s = 0.002
        self._say = say
        self._servers: dict[tuple[str, int], VirtualServer] = {}
        self._dark: set[str] = set()
        self._cuts: set[tuple[str, str]] = set()
        self._ends: list[VirtualTransport] = []
        self._count = 0

    # --- what happens to it

    def cut(self, source: str, target: str) -> None:
        """Let nothing through in one direction."""
        self._cuts.add((source, target))

    def heal(self, source: str, target: str) -> None:
        """Let it through again; what waited goes on, or has waited for too long."""
        self._cuts.discard((source, target))
        for end in self._ends:
            if end.process.host == source and end.peer.process.host == target and end.outgoing:
                if self.loop.chance.random() < 0.3:
                    self._break(end)
                self._travel(end)

    def heal_all(self) -> None:
        """Let everything through."""
        for source, target in sorted(self._cuts):
            self.heal(source, target)

    @property
    def cuts(self) -> list[tuple[str, str]]:
        """Where nothing gets through."""
        return sorted(self._cuts)

    def lose_power(self, host: str) -> None:
        """A host is gone without a word."""
        self._dark.add(host)
        self._forget(host)
        for end in self._ends:
            if end.process.host == host:
                end.is_open = False
                end.outgoing.clear()

    def have_power(self, host: str) -> None:
        """A host is there again, and knows nothing of old."""
        self._dark.discard(host)
        for end in self._ends:
            if end.peer.process.host == host:
                self._travel(end)

    def end_process(self, process: Process) -> None:
        """A process is gone, and its host says so to those it spoke with."""
        self._forget(process.host)
        for end in tuple(self._ends):
            if end.process is process and end.is_open:
                end.is_open = False
                self.send(end, RESET)

    def _forget(self, host: str) -> None:
        self._servers = {address: server for address, server in self._servers.items() if address[0] != host}

    def _break(self, end: VirtualTransport) -> None:
        end.outgoing.clear()
        end.outgoing.append(RESET)
        end.arrive(RESET)

    # --- addresses

    def bind(self, process: Process, factory: Factory, port: int) -> VirtualServer:
        """Take an address; OSError if it is taken."""
        address = (process.host, port)
        if address in self._servers:
            raise OSError(98, "Address already in use")
        server = self._servers[address] = VirtualServer(self, process, factory, port)
        return server

    def unbind(self, address: tuple[str, int], server: VirtualServer) -> None:
        """Give an address back."""
        if self._servers.get(address) is server:
            del self._servers[address]

    # --- connections

    async def connect(
        self, process: Process, factory: Factory, host: str, port: int
    ) -> tuple[VirtualTransport, asyncio.BaseProtocol]:
        """Connect, in the turn of the one who asks; hangs as long as a cut hides the other host."""
        await self._cross(process.host, host)
        server = self._servers.get((host, port))
        await self._cross(host, process.host)
        if server is None or not server.is_serving:
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = self._pair(process, server, port)
        protocol = factory()
        ours.set_protocol(protocol)
        self.loop.call_soon(self._accept, server.factory, theirs, context=server.process.context)
        protocol.connection_made(ours)
        self._say(f"{process.host} connects to {host}:{port} #{ours.number}")
        return ours, protocol

    async def _cross(self, source: str, target: str) -> None:
        await asyncio.sleep(self._delay_s())
        while (source, target) in self._cuts or {source, target} & self._dark:  # noqa: ASYNC110 - as TCP does
            await asyncio.sleep(_SYN_AGAIN_S)

    def _pair(self, process: Process, server: VirtualServer, port: int) -> tuple[VirtualTransport, VirtualTransport]:
        self._count += 1
        near, far = (process.host, 40_000 + self._count), (server.process.host, port)
        ours = VirtualTransport(self, process, self._count, {"sockname": near, "peername": far})
        theirs = VirtualTransport(self, server.process, self._count, {"sockname": far, "peername": near})
        ours.peer, theirs.peer = theirs, ours
        theirs.is_open = server.process.is_alive
        self._ends = [end for end in self._ends if end.is_open or end.peer.is_open or end.outgoing]
        self._ends += (ours, theirs)
        return ours, theirs

    @staticmethod
    def _accept(factory: Factory, end: VirtualTransport) -> None:
        protocol = factory()
        end.set_protocol(protocol)
        protocol.connection_made(end)

    # --- parcels

    def send(self, end: VirtualTransport, parcel: Parcel) -> None:
        """Put something on its way to the other end."""
        if parcel is RESET:
            end.outgoing.clear()
        end.outgoing.append(parcel)
        self._travel(end)

    def _delay_s(self) -> float:
        chance = self.loop.chance
        return chance.random() * self.delay_s * (100 if chance.random() < _LATE else 1)

    def _travel(self, end: VirtualTransport) -> None:
        if not end.is_travelling and end.outgoing:
            end.is_travelling = True
            self.loop.call_later(self._delay_s(), self._reach, end, context=self.loop.outside.context)

    def _reach(self, end: VirtualTransport) -> None:
        """The first parcel is there, unless something is in its way."""
        end.is_travelling = False
        source, target = end.process.host, end.peer.process.host
        if not end.outgoing or (source, target) in self._cuts or {source, target} & self._dark:
            return
        if end.outgoing[0] is not RESET and self.loop.chance.random() < self.break_chance:
            self._say(f"{source}>{target} #{end.number} breaks")
            self._break(end)
        parcel = end.outgoing.popleft()
        if parcel and len(parcel) > 1 and self.loop.chance.random() < _SPLIT:
            at = self.loop.chance.randrange(1, len(parcel))
            end.outgoing.appendleft(parcel[at:])
            parcel = parcel[:at]
        what = "reset" if parcel is RESET else f"{len(parcel)} {zlib.crc32(parcel):08x}"
        self._say(f"{source}>{target} #{end.number} {what}")
        self._hand_over(end, parcel)
        end.sent()
        self._travel(end)

    def _hand_over(self, end: VirtualTransport, parcel: Parcel) -> None:
        if end.peer.is_open:
            end.peer.arrive(parcel)
        elif parcel is not RESET and end.is_open:
            # Nobody there knows this connection (any more).
            end.peer.outgoing.append(RESET)
            self._travel(end.peer)
