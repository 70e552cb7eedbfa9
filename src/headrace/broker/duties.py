"""What the active controller does by itself from time to time: fence who is silent, balance leaders, show life."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.lookout import LOOK_S
from headrace.cores.controller import Outcome, balance_leaders, elect_unclean_leaders, fence_stale_broker
from headrace.model.errors import HeadraceError
from headrace.model.metadata_records import NoOpRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headrace.broker.broker import Broker
    from headrace.cores.metadata import Metadata

logger = logging.getLogger(__name__)

_IDLE_CHECK_S = 1.0
"""How often is looked for sessions where no broker serves, and so none can run out."""


class Duties:
    """The tasks of one node while it is the active controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, begun: Awaitable[None]) -> None:
        """Begin, after the first decisions of this controller."""
        self.stop()
        config = self._broker.config
        rounds: list[tuple[Callable[[], float], Callable[[], Awaitable[None]]]] = [
            (self._session_s, self._fence),
            (lambda: LOOK_S, self._look_out),
        ]
        if config["auto.leader.rebalance.enable"]:
            rounds.append((lambda: config["leader.imbalance.check.interval.seconds"], self._balance))
        if config["metadata.max.idle.interval.ms"]:
            rounds.append((lambda: config["metadata.max.idle.interval.ms"] / 1000, self._show_life))
        rounds.append((lambda: config["unclean.leader.election.interval.ms"] / 1000, self._elect_uncleanly))
        self._tasks = [asyncio.ensure_future(self._every(begun, pause_s, work)) for pause_s, work in rounds]

    def stop(self) -> None:
        """Another node is the active controller, or none."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _every(
        self, begun: Awaitable[None], pause_s: Callable[[], float], work: Callable[[], Awaitable[None]]
    ) -> None:
        await asyncio.wait({asyncio.ensure_future(begun)})
        while True:
            await asyncio.sleep(pause_s())
            try:
                await work()
            except HeadraceError as error:
                # Not the active controller any more, or its disk fails; whichever it is, others tell it.
                logger.info("duty_put_off duty=%s reason=%s", work.__name__, error)
            except Exception:
                # A mistake of ours, told where it can be seen; the duty is due again all the same.
                logger.exception("duty_failed duty=%s", work.__name__)

    # --- silent brokers

    def _session_s(self) -> float:
        """When the next session can run out."""
        controller = self._broker.controller
        try:
            due_ms = controller.liveness.next_check_ms()
        except HeadraceError:
            # The decision before this pause was the one in which this node lost the lead: the pause ends the duty.
            return _IDLE_CHECK_S
        return _IDLE_CHECK_S if due_ms is None else max(due_ms - controller.now_ms(), 1) / 1000

    async def _fence(self) -> None:
        while (fenced := await self._fence_one()) is not None:
            logger.info("broker_fenced broker=%d reason=session_over", fenced)

    async def _look_out(self) -> None:
        """End the sessions of brokers whose processes are gone."""
        controller = self._broker.controller
        dead = await controller.lookout.look()
        for broker_id in dead:
            logger.info("broker_lost broker=%d reason=nobody_listens", broker_id)
            controller.liveness.lose(broker_id)
        if dead:
            await self._fence()

    async def _fence_one(self) -> int | None:
        controller = self._broker.controller
        liveness = controller.liveness
        return await controller.run(
            lambda metadata: fence_stale_broker(
                metadata, liveness, now_ms=controller.now_ms(), policy=controller.policy
            )
        )

    # --- leaders

    async def _balance(self) -> None:
        await self._while_there_is_more(balance_leaders)

    async def _elect_uncleanly(self) -> None:
        await self._while_there_is_more(elect_unclean_leaders)

    async def _while_there_is_more(self, elect: Callable[..., Outcome[bool]]) -> None:
        """Hold elections, so many at a time that others have their turn between."""
        controller = self._broker.controller
        has_more = True
        while has_more:
            has_more = await controller.run(partial(elect, policy=controller.policy))

    # --- signs of life

    async def _show_life(self) -> None:
        """Write a record that says nothing, so that others see the metadata move; where there are others."""
        nodes = {*self._broker.controller.voter_ids, *self._broker.metadata.brokers}
        if nodes - {self._broker.node_id}:
            await self._broker.controller.run(_nothing)


def _nothing(metadata: Metadata) -> Outcome[None]:
    return Outcome([NoOpRecord()], None)
