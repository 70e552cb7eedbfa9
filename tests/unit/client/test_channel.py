"""A question and its answer on one connection."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.client.channel import Channel
from headrace.client.fault import TimedOut


def asking(answer, timeout_s=30.0):
    """A question on a connection that is none, whose answer comes in a future."""
    channel = Channel.__new__(Channel)
    channel.where = "nowhere"
    channel._options = SimpleNamespace(request_timeout_s=timeout_s)
    channel.send = lambda *_: answer
    return asyncio.ensure_future(channel.ask(1, None, version=1))


def test_cancelled_with_the_answer():
    """Is one who asks in a loop, and is cancelled just when the answer comes, cancelled all the same?"""

    async def run():
        answer = asyncio.get_running_loop().create_future()
        task = asking(answer)
        await asyncio.sleep(0)
        answer.set_result("answer")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_no_answer():
    """Is an answer that does not come in time said to be missing?"""

    async def run():
        with pytest.raises(TimedOut, match="Fetch"):
            await asking(asyncio.get_running_loop().create_future(), timeout_s=0.001)

    asyncio.run(run())
