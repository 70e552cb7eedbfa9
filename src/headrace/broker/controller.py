"""This node's part as a controller: deciding, while the quorum lets it, with what it knows of the brokers' sessions.

Every node has one of these; it decides on the active controller only, and elsewhere says that it cannot.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from headrace.broker.duties import Duties
from headrace.broker.features import SUPPORTED, first_levels
from headrace.broker.lookout import Lookout
from headrace.cores.controller import (
    Heartbeat,
    HeartbeatReply,
    Liveness,
    Policy,
    Registration,
    ThisController,
    heartbeat,
    register_broker,
    unregister_broker,
)
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.cores.controller import Command

Reply = TypeVar("Reply")


class NotController(HeadraceError):
    """This node does not decide, or does so no longer: whoever asked asks another; no handler may swallow it."""


class Controller:
    """Decisions of one node."""

    def __init__(self, broker: Broker, *, incarnation_id: UUID) -> None:
        self._broker = broker
        self._incarnation_id = incarnation_id
        self._liveness: Liveness | None = None
        self._begun: asyncio.Future[None] | None = None
        """Ends when this node, newly active, has done what comes before all decisions."""
        self.duties = Duties(broker)
        self.lookout = Lookout(broker)

    # --- what handlers ask

    @property
    def policy(self) -> Policy:
        """What this node's settings say where a topic's do not."""
        config = self._broker.config
        return Policy(
            min_insync_replicas=config["min.insync.replicas"],
            unclean_leader_election=config["unclean.leader.election.enable"],
            node_id=self._broker.node_id,
        )

    @property
    def this_controller(self) -> ThisController:
        """What this node knows of itself and of who votes."""
        return ThisController(node_id=self._broker.node_id, supported=SUPPORTED, quorum=self.voter_ids)

    @property
    def voter_ids(self) -> Collection[int]:
        """Who votes: those the file names, or where the log does, the controllers that registered."""
        voters = self._broker.quorum.settings.static_voters
        return self._broker.metadata.controllers if voters is None else voters.by_id

    @property
    def liveness(self) -> Liveness:
        """The brokers' sessions; NotController where they are not kept."""
        if self._liveness is None:
            raise NotController("This node is not the active controller.")
        return self._liveness

    def now_ms(self) -> int:
        """A clock for sessions, which nobody can set."""
        return int(asyncio.get_running_loop().time() * 1000)

    async def run(self, command: Command[Reply]) -> Reply:
        """Take one decision and give its reply when it is committed; NotController if this node may not decide."""
        if self._begun is not None and not self._begun.done():
            # However that ends: if it fails, so will what comes after it, with an error of its own.
            await asyncio.wait({self._begun})
        return await self._run(command)

    async def _run(self, command: Command[Reply]) -> Reply:
        try:
            return await self._broker.quorum.run(command)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                raise NotController(error.message) from error
            raise

    async def finish(self) -> None:
        """Have the node take over what it could not when it was committed."""
        await self._broker.quorum.finish()

    # --- brokers

    async def register(self, wanted: Registration) -> int:
        """Let a broker in; the reply is its epoch."""
        liveness, quorum = self.liveness, self._broker.quorum
        return await self.run(
            lambda metadata: register_broker(
                metadata,
                liveness,
                wanted,
                cluster_id=self._broker.cluster_id,
                next_offset=quorum.next_offset,
                now_ms=self.now_ms(),
                policy=self.policy,
            )
        )

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatReply:
        """Take note of a broker's heartbeat."""
        liveness, quorum = self.liveness, self._broker.quorum
        return await self.run(
            lambda metadata: heartbeat(
                metadata, liveness, beat, next_offset=quorum.next_offset, now_ms=self.now_ms(), policy=self.policy
            )
        )

    async def unregister(self, broker_id: int) -> None:
        """Take a broker out of the cluster."""
        await self.run(partial(unregister_broker, liveness=self.liveness, broker_id=broker_id, policy=self.policy))

    # --- coming and going

    def on_leadership(self, is_active: bool) -> None:
        """The quorum made this node the active controller, or takes that back."""
        if is_active:
            self._begin()
        else:
            self._liveness = None
            self.duties.stop()
            if self._begun is not None:
                self._begun.cancel()
            self._begun = None

    def _begin(self) -> None:
        metadata, node_id = self._broker.quorum.metadata, self._broker.node_id
        self._liveness = Liveness(
            metadata, session_timeout_ms=self._broker.config["broker.session.timeout.ms"], now_ms=self.now_ms()
        )
        for broker_id, known in metadata.brokers.items():
            # This process has the log dirs, so that another which registered under its id cannot be alive.
            is_past = broker_id == node_id and known.incarnation_id != self._incarnation_id
            if known.fenced or is_past:
                # A fenced broker has no session to wait for: one that stopped cleanly may be back at once.
                self._liveness.session(broker_id).contact_ms = None
        self.lookout.begin()
        self._begun = asyncio.ensure_future(self._first_decisions())
        self._begun.add_done_callback(_heard)
        self.duties.start(self._begun)

    async def _first_decisions(self) -> None:
        """Say at what levels a new cluster runs, before anything else is decided."""
        first_records = self._broker.store.first_records
        await self._run(partial(first_levels, first_records=first_records, policy=self.policy))

    def stop(self) -> None:
        """Decide nothing more."""
        self.on_leadership(False)


def _heard(work: asyncio.Future[None]) -> None:
    """Whoever waits for it hears of its failure; that nobody may wait is no mistake."""
    if not work.cancelled():
        work.exception()
