"""This node's place in the cluster: it registers, says again and again that it lives, and takes its leave.

registered (fenced) ── caught up, logs open: `serve` ──> unfenced ── `leave` ──> its leaders move ──> may go

A broker registers before it opens its logs, so that others know soon who was in what state when it stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from headrace.broker.features import SUPPORTED
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError
from headrace.wire.messages import broker_registration, controller_registration
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.broker.listeners import Endpoint

logger = logging.getLogger(__name__)

REGISTRATION, HEARTBEAT, CONTROLLER_REGISTRATION = 62, 63, 70
PURPOSE = "membership"
RETRY_S = 0.1
"""Between two registrations of which the first was refused for now; Kafka's first backoff."""
LEAVE_RETRY_S = 0.02
LEAVE_TIMEOUT_S = 30.0
"""How long a broker that stops waits at most for others to take over."""
LEAVE_SILENCE_S = 3.0
"""How long it waits without a word from a controller: longer than an election."""
LEAVE_LOOK_S = 0.3
"""After so long without a word it looks whether controllers are there at all: where all nodes stop, none will come."""
PLAINTEXT = 0
"""The number of the one security protocol that is served."""

_FINAL = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "This node's log dirs are of cluster {cluster}, the controllers' of another. "
    "Format them with the id of this cluster, or correct controller.quorum.voters.",
    ErrorCode.INVALID_REGISTRATION: "The active controller refused the registration of broker {node}: another broker "
    "may have log dirs with the same directory.id.",
    ErrorCode.UNSUPPORTED_VERSION: "The cluster runs at a level of a feature that this broker does not support.",
}
"""Refusals that will not go away, and what to do about them."""


class NotAdmitted(HeadraceError):
    """The cluster does not take this broker."""


class Membership:
    """One node's registrations and heartbeats."""

    def __init__(self, broker: Broker, *, incarnation_id: UUID) -> None:
        self._broker = broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = -1
        self._is_ready = False
        self._wants_shutdown = False
        self._beat_now = asyncio.Event()
        self._heard_s = 0.0
        """When a controller last answered a heartbeat."""
        self._unfenced = asyncio.Event()
        self._may_go = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.offline_log_dirs: Callable[[], Sequence[UUID]] = list

    # --- the broker

    async def register(self, previous_broker_epoch: int) -> None:
        """Become part of the cluster, fenced at first; `previous_broker_epoch` is -1 unless it stopped cleanly."""
        timeout_s = self._broker.config["initial.broker.registration.timeout.ms"] / 1000
        deadline = asyncio.get_running_loop().time() + timeout_s
        request = self._registration(previous_broker_epoch)
        code = ErrorCode.REQUEST_TIMED_OUT
        while True:
            answer = await self._try_to_register(request, deadline - asyncio.get_running_loop().time())
            if answer is ErrorCode.NONE:
                break
            # What the controller said explains more than that it said nothing since.
            code = code if answer is ErrorCode.REQUEST_TIMED_OUT else answer
            if code in _FINAL or asyncio.get_running_loop().time() >= deadline:
                raise NotAdmitted(self._reason(code))
            self._tell_refusal(code)
            await asyncio.sleep(RETRY_S)
        logger.info("broker_registered broker=%d epoch=%d", self._broker.node_id, self.broker_epoch)
        self._spawn(self._beat())

    def _tell_refusal(self, code: ErrorCode) -> None:
        """Say at once why this broker waits: what stands in its way may go away."""
        duplicate = code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        reason = self._reason(code) if duplicate else "The active controller does not take this broker yet."
        subject = f"broker={self._broker.node_id}"
        self._broker.refusals.tell("registration_refused", subject, KafkaError(code, reason), level=logging.WARNING)

    async def _try_to_register(
        self, request: broker_registration.BrokerRegistrationRequest, timeout_s: float
    ) -> ErrorCode:
        try:
            response = await self._broker.control.ask(REGISTRATION, request, timeout_s=timeout_s, purpose=PURPOSE)
        except KafkaError as error:
            is_elsewhere = error.code is ErrorCode.REQUEST_TIMED_OUT and self._broker.quorum.is_elsewhere
            return ErrorCode.INCONSISTENT_CLUSTER_ID if is_elsewhere else error.code
        self.broker_epoch = response.broker_epoch
        return ErrorCode(response.error_code)

    def _reason(self, code: ErrorCode) -> str:
        node, cluster = self._broker.node_id, self._broker.cluster_id
        if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return (
                f"Another broker with node.id {node} is running in this cluster. Stop it, or set another node.id and "
                "use other log dirs."
            )
        if code in _FINAL:
            return _FINAL[code].format(node=node, cluster=cluster)
        return f"Broker {node} could not register within initial.broker.registration.timeout.ms: {code.name}."

    def _registration(self, previous_broker_epoch: int) -> broker_registration.BrokerRegistrationRequest:
        broker = self._broker
        return broker_registration.BrokerRegistrationRequest(
            broker_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=tuple(
                broker_registration.Listener(
                    name=told.listener, host=told.host, port=told.port, security_protocol=PLAINTEXT
                )
                for told in _endpoints(broker, controllers=False)
            ),
            features=tuple(
                broker_registration.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ),
            rack=broker.config["broker.rack"],
            log_dirs=tuple(broker.directory_ids),
            previous_broker_epoch=previous_broker_epoch,
        )

    def greet(self) -> None:
        """Another controller leads: let it know at once that this broker lives."""
        self._beat_now.set()

    def report(self) -> None:
        """A log dir failed: let the controller know at once, so that others lead what was there."""
        self._beat_now.set()

    async def serve(self) -> None:
        """Say that the logs are open and the metadata known; returns when the controller has unfenced this broker."""
        self._is_ready = True
        self._beat_now.set()
        await self._unfenced.wait()

    async def leave(self) -> None:
        """Have others take over what this broker leads, as far as there are others, before it stops."""
        if self.broker_epoch < 0 or not self._tasks or not self._broker.config["controlled.shutdown.enable"]:
            return
        self._wants_shutdown = True
        self._beat_now.set()
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        while not self._may_go.is_set():
            silent_s = now_s() - max(began_s, self._heard_s)
            if now_s() > began_s + LEAVE_TIMEOUT_S or await self._is_left_alone(silent_s):
                logger.warning("controlled_shutdown_given_up seconds=%.1f", now_s() - began_s)
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self._may_go.wait()

    async def _is_left_alone(self, silent_s: float) -> bool:
        """Whether no controller will say a word any more."""
        return silent_s > LEAVE_SILENCE_S or (silent_s > LEAVE_LOOK_S and await self._broker.quorum.is_deserted())

    def stop(self) -> None:
        """Say nothing more."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    # --- heartbeats

    async def _beat(self) -> None:
        while not self._may_go.is_set():
            self._beat_now.clear()
            pause_s = self._broker.config["broker.heartbeat.interval.ms"] / 1000
            try:
                response = await self._broker.control.ask(
                    HEARTBEAT, self._heartbeat(), timeout_s=max(pause_s, 1.0), purpose=PURPOSE
                )
                pause_s = self._heard(response, pause_s)
            except KafkaError as error:
                logger.warning("heartbeat_failed broker=%d reason=%s", self._broker.node_id, error)
                pause_s = min(pause_s, RETRY_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._beat_now.wait()

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._broker.quorum.applied_offset - 1,
            want_fence=not self._is_ready,
            want_shut_down=self._wants_shutdown,
            offline_log_dirs=tuple(self.offline_log_dirs()),
        )

    def _heard(self, response: BrokerHeartbeatResponse, pause_s: float) -> float:
        """Take in an answer; how long until the next heartbeat."""
        self._heard_s = asyncio.get_running_loop().time()
        if response.error_code:
            code = ErrorCode(response.error_code)
            logger.warning("heartbeat_refused broker=%d reason=%s", self._broker.node_id, code.name)
            return pause_s
        if response.should_shut_down:
            self._may_go.set()
        if self._wants_shutdown:
            return LEAVE_RETRY_S
        if response.is_fenced:
            self._unfenced.clear()
            return min(pause_s, LEAVE_RETRY_S) if self._is_ready else pause_s
        self._unfenced.set()
        return pause_s

    # --- the controller

    def register_controller(self) -> None:
        """Tell the active controller, now or when there is one, where this controller is and what it supports."""
        self._spawn(self._register_controller())

    async def _register_controller(self) -> None:
        broker = self._broker
        request = controller_registration.ControllerRegistrationRequest(
            controller_id=broker.node_id,
            incarnation_id=self.incarnation_id,
            listeners=tuple(
                controller_registration.Listener(
                    name=told.listener, host=told.host, port=told.port, security_protocol=PLAINTEXT
                )
                for told in _endpoints(broker, controllers=True)
            ),
            features=tuple(
                controller_registration.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ),
        )
        while True:
            with contextlib.suppress(KafkaError):
                response = await broker.control.ask(CONTROLLER_REGISTRATION, request, purpose="controller")
                if not response.error_code:
                    return
                logger.warning("controller_not_registered reason=%s", ErrorCode(response.error_code).name)
            await asyncio.sleep(RETRY_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_tell_failure)
        self._tasks.append(task)


def _tell_failure(task: asyncio.Task[None]) -> None:
    """A broker that falls silent by a mistake of ours must not do so without a word."""
    if not task.cancelled() and task.exception() is not None:
        logger.critical("membership_failed", exc_info=task.exception())


def _endpoints(broker: Broker, *, controllers: bool) -> list[Endpoint]:
    names = broker.config.controller_listener_names
    return [told for told in broker.endpoints.values() if (told.listener in names) == controllers]
