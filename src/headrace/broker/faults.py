"""Faults on request: a test may ask a broker to refuse, delay or drop the next requests of an API."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from headrace.net.reply import Buffers, CloseConnection, PendingReply

if TYPE_CHECKING:
    from headrace.broker.api import Api, Call

Answer = Callable[["Call", "Api", memoryview], "Buffers | PendingReply"]


class Fault(Struct, frozen=True, kw_only=True):
    """What happens to one request."""

    kind: Literal["refuse", "delay", "drop", "drop_reply"]
    """refuse: close the connection; drop: never answer; drop_reply: do it, but never answer; delay: wait first."""
    delay_s: float = 0.0


class Faults:
    """The faults a test has armed, by API key; empty and free of cost otherwise."""

    def __init__(self, apis: dict[int, Api]) -> None:
        self._apis = apis
        self._armed: dict[int, deque[Fault]] = defaultdict(deque)
        self.armed = False

    def arm(self, key: int, fault: Fault, *, times: int = 1) -> None:
        """Let the next `times` requests of an API meet `fault`."""
        self._armed[key].extend([fault] * times)
        self.armed = True

    def clear(self) -> None:
        """Forget all that has not happened yet."""
        self._armed.clear()
        self.armed = False

    def handle(self, call: Call, request: bytes, answer: Answer) -> Buffers | PendingReply:
        """Answer `request`, through the fault that is armed for its API if there is one."""
        key = call.header.api_key
        api = self._apis[key]
        waiting = self._armed.get(key)
        if not waiting:
            return answer(call, api, memoryview(bytearray(request)))
        fault = waiting.popleft()
        if not waiting:
            del self._armed[key]
            self.armed = bool(self._armed)
        if fault.kind == "refuse":
            raise CloseConnection("a test asked for it")
        if fault.kind == "drop":
            return PendingReply()
        if fault.kind == "drop_reply":
            answer(call, api, memoryview(bytearray(request)))
            return PendingReply()
        return self._delayed(call, api, request, answer, fault.delay_s)

    def _delayed(self, call: Call, api: Api, request: bytes, answer: Answer, delay_s: float) -> PendingReply:
        reply = PendingReply()

        def go() -> None:
            try:
                result = answer(call, api, memoryview(bytearray(request)))
            except CloseConnection as ending:
                call.connection.close(str(ending))
                return
            if isinstance(result, PendingReply):
                result.attach(lambda: reply.send(result.buffers or ()))
                if result.buffers is not None:
                    reply.send(result.buffers)
            else:
                reply.send(result)

        asyncio.get_running_loop().call_later(delay_s, go)
        return reply
