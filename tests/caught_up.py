"""Nodes of a cluster that know all that was decided: one of them may be asked what another one was told."""

import asyncio


async def caught_up(brokers):
    """Wait until each of these has taken over what is committed by now; the controller answers before the others do."""
    await asyncio.gather(*(_caught_up(broker) for broker in brokers))


async def _caught_up(broker):
    await broker.quorum.caught_up()
    async with broker.quorum.turn:
        """The last of it is made, too: its partitions are there and led."""
