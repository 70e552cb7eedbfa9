"""Producer ids, unique for ever: taken from blocks that the active controller gave out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

ALLOCATE_PRODUCER_IDS = 67


class ProducerIds:
    """The block this broker is using; what is left of it at a restart is skipped, never reused."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._left: list[int] = []
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        """A producer id nobody has had."""
        async with self._turn:
            if not self._left:
                self._left = await self._block()
            return self._left.pop()

    async def _block(self) -> list[int]:
        request = AllocateProducerIdsRequest(broker_id=self._broker.node_id, broker_epoch=self._broker.broker_epoch)
        answer: AllocateProducerIdsResponse = await self._broker.control.ask(ALLOCATE_PRODUCER_IDS, request)
        if answer.error_code:
            # A client that hears this tries again: the broker may be about to register anew.
            reason = ErrorCode(answer.error_code).name
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"No producer ids were given out: {reason}")
        first = answer.producer_id_start
        return list(range(first + answer.producer_id_len - 1, first - 1, -1))
