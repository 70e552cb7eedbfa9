"""Asking the active controller, wherever it is: the way for all that a broker itself wants decided.

The controller may be this node, may be another, may move or be missing for a while: `ask` tries until there is an
answer or its time is over. What is asked may therefore be decided twice, and must not mind.
"""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from headrace.broker.api import Api, Call
from headrace.broker.controller import NotController
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import Link, LinkBroken, NotSent
from headrace.wire.header import RequestHeader

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

BACKOFF_S = 0.05
"""Between two tries; an election takes longer, and a try costs little."""
TIMEOUT_S = 30.0
"""How long is tried if nobody says."""
_MOVED = "the active controller is another now"


def refuse_if_broken(broker: Broker) -> None:
    """Raise what is wrong with this node's metadata log, if it takes part no longer."""
    fault = broker.quorum.fault
    if fault is not None:
        # A new one each time: an exception that is raised again remembers every place it was raised at.
        raise KafkaError(fault.code, fault.message)


class Control:
    """One broker's way to the active controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._links: dict[str, Link] = {}
        self._is_closed = False

    async def ask(self, api_key: int, request: Any, *, timeout_s: float = TIMEOUT_S, purpose: str = "requests") -> Any:
        """The active controller's answer; KafkaError(REQUEST_TIMED_OUT) if there is none in time.

        Questions of one purpose share a connection, on which an answer waits for those before it.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        reason = "there is no active controller"
        while not self._is_closed and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                response = await self._try(api_key, request, purpose, left_s)
            except (NotController, LinkBroken) as problem:
                reason = str(problem)
            else:
                if getattr(response, "error_code", 0) != ErrorCode.NOT_CONTROLLER:
                    return response
                reason = "the active controller has moved"
            await asyncio.sleep(BACKOFF_S)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The active controller did not answer: {reason}.")

    async def _try(self, api_key: int, request: Any, purpose: str, timeout_s: float) -> Any:
        broker = self._broker
        refuse_if_broken(broker)
        api = broker.controller_apis[api_key]
        if broker.quorum.is_active:
            return await self._decide(api, request, timeout_s)
        timeout_s = min(timeout_s, broker.config["controller.socket.timeout.ms"] / 1000)
        return await self.link(purpose).ask(api_key, api.high, request, timeout_s=timeout_s)

    async def _decide(self, api: Api, request: Any, timeout_s: float) -> Any:
        """What this node's own handler answers, unless it takes too long: metadata may have much to be made of it."""
        try:
            async with asyncio.timeout(timeout_s):
                answer = api.handle(self._own_call(api.key, api.high), request)
                return await answer if inspect.isawaitable(answer) else answer
        except TimeoutError:
            raise NotController(f"this node did not decide within {timeout_s:g} s") from None

    def _own_call(self, api_key: int, version: int) -> Call:
        """A request that never was on a wire."""
        listener = self._broker.config.controller_listener_names[0]
        asker: Any = SimpleNamespace(listener_name=listener, peer=("127.0.0.1", 0))
        return Call(self._broker, asker, RequestHeader(api_key, version, 0, f"broker-{self._broker.node_id}", 0))

    def link(self, purpose: str) -> Link:
        """The connection to the active controller for a purpose; NotSent if it is unknown who that is."""
        endpoint = self._broker.quorum.leader_endpoint()
        if endpoint is None or self._broker.quorum.leader_id in {-1, self._broker.node_id}:
            raise NotSent("there is no active controller")
        known = self._links.get(purpose)
        if known is not None and (known.host, known.port) == (endpoint.host, endpoint.port):
            return known
        if known is not None:
            known.close(_MOVED)
        made = self._links[purpose] = Link(endpoint.host, endpoint.port, client_id=f"broker-{self._broker.node_id}")
        return made

    def on_leader(self) -> None:
        """Another controller leads: whoever waits for the old one, which may have lost its power, asks the new one."""
        endpoint = self._broker.quorum.leader_endpoint()
        for purpose, link in list(self._links.items()):
            if endpoint is None or (link.host, link.port) != (endpoint.host, endpoint.port):
                del self._links[purpose]
                link.close(_MOVED)

    def close(self) -> None:
        """Hang up, and try nothing more."""
        self._is_closed = True
        for link in self._links.values():
            link.close()
        self._links.clear()
