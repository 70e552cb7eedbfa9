"""Producer ids, unique for ever: taken from blocks that the metadata log gave out."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from headrace.cores.controller import allocate_producer_ids

if TYPE_CHECKING:
    from headrace.coordination.standalone import StandaloneMetadata


class ProducerIds:
    """The block this broker is using; what is left of it at a restart is skipped, never reused."""

    def __init__(self, controller: StandaloneMetadata, *, broker_id: int) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._left: list[int] = []
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        """A producer id nobody has had."""
        async with self._turn:
            if not self._left:
                block = await self._controller.run(
                    partial(allocate_producer_ids, broker_id=self._broker_id, broker_epoch=0)
                )
                self._left = list(reversed(block))
            return self._left.pop()
