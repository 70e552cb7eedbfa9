"""How the active controller notices that a broker's process is gone, before its session runs out.

When a process dies its system closes its connections, and refuses new ones to where it listened. A broker whose
heartbeats' connection is closed, or that a new active controller has not heard yet, is looked for; if its machine
refuses twice it is taken for dead. A machine or a network that is gone refuses nothing: then the session decides, as in
Kafka. Nothing depends on being right: a broker that lives is back with its next heartbeat.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.net.link import LinkBroken, is_refused

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.net.connection import Connection

LOOK_S = 0.25
"""How often the connections are looked at; that costs nothing while they are open."""
FIRST_WORD_S = 1.0
"""How long a new active controller waits for a broker's first heartbeat before it looks for it."""
_REFUSALS_TO_DEATH = 2
_LOOKED_FOR_MAX = 100
"""So many are looked for at a time; the others have their turn next."""


class Lookout:
    """What one active controller knows of the brokers' connections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._contacts: dict[int, Connection] = {}
        self._refusals: dict[int, int] = {}
        self._since_s = 0.0

    def begin(self) -> None:
        """This node has become the active controller: nobody was heard yet."""
        self._contacts.clear()
        self._refusals.clear()
        self._since_s = asyncio.get_running_loop().time()

    def heard(self, broker_id: int, connection: Connection) -> None:
        """A broker's heartbeat came over a connection."""
        self._contacts[broker_id] = connection
        self._refusals.pop(broker_id, None)

    async def look(self) -> list[int]:
        """The brokers that serve by the metadata, and whose processes are gone."""
        missing = [broker_id for broker_id in self._broker.live_brokers if self._is_missing(broker_id)]
        dead = await asyncio.gather(*map(self._is_dead, missing[:_LOOKED_FOR_MAX]))
        return [broker_id for broker_id, is_dead in zip(missing, dead, strict=False) if is_dead]

    def _is_missing(self, broker_id: int) -> bool:
        if broker_id == self._broker.node_id:
            return False
        contact = self._contacts.get(broker_id)
        if contact is None:
            return asyncio.get_running_loop().time() > self._since_s + FIRST_WORD_S
        return contact.is_hung_up

    async def _is_dead(self, broker_id: int) -> bool:
        try:
            host, port = self._broker.peers.address_of(broker_id)
        except LinkBroken:
            return False
        if not await is_refused(host, port, timeout_s=LOOK_S):
            self._refusals.pop(broker_id, None)
            return False
        self._refusals[broker_id] = self._refusals.get(broker_id, 0) + 1
        return self._refusals[broker_id] >= _REFUSALS_TO_DEATH
