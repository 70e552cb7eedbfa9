"""A producer that counts what the cluster took and what it refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.client.async_producer import AsyncKafkaProducer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from headrace.gateway.meters import Meters


class MeteredProducer(AsyncKafkaProducer):
    """The gateway's producer."""

    def __init__(self, meters: Meters, config: Mapping[str, Any]) -> None:
        super().__init__(config=config)
        self._meters = meters

    async def send(self, *arguments: Any, **named: Any) -> asyncio.Future[Any]:
        """Hand a record over, and note what becomes of it."""
        try:
            stored = await super().send(*arguments, **named)
        except Exception:
            self._meters.records_refused += 1
            raise
        stored.add_done_callback(self._note)
        return stored

    def _note(self, stored: asyncio.Future[Any]) -> None:
        if stored.cancelled() or stored.exception() is not None:
            self._meters.records_refused += 1
        else:
            self._meters.records_stored += 1
