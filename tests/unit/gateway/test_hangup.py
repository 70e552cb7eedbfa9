"""Clients that hang up, without a socket."""

import asyncio

import pytest

from headrace.gateway.hangup import unless_hung_up
from headrace.gateway.problem import Problem


class Caller:
    """A request whose client hangs up when it is told to."""

    def __init__(self):
        self.gone = asyncio.Event()
        self._said = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive(self):
        """What the server says of the client."""
        if self._said:
            return self._said.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}


def test_work_for_nobody_is_given_up():
    """Is the work cancelled when the client hangs up?"""

    async def story():
        caller, ended = Caller(), asyncio.Event()

        async def work():
            caller.gone.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        with pytest.raises(Problem):
            await unless_hung_up(caller, work())
        return ended.is_set()

    assert asyncio.run(story())


def test_results_and_faults_come_through():
    """Does the caller get what the work gives, or raises?"""

    async def give():
        return 5

    async def fail():
        raise ZeroDivisionError

    async def story():
        assert await unless_hung_up(Caller(), give()) == 5
        with pytest.raises(ZeroDivisionError):
            await unless_hung_up(Caller(), fail())

    asyncio.run(story())
