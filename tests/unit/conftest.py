"""What unit tests have besides: event loops that watch themselves."""

import asyncio
import asyncio.constants

import pytest


@pytest.fixture(scope="module", autouse=True)
def _watchful_loops():
    """Asyncio's debug mode finds what was forgotten: callbacks from the wrong thread, and turns that take too long.

    It adds to the work of a broker, so that only the smallest tests have it. What it keeps of who made a callback is
    only as deep as is needed to know them; who made a future or task it keeps with the whole stack, which took most of
    the time of these tests, so those, which ask the loop by this method, are told that it is off.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.constants, "DEBUG_STACK_DEPTH", 2)
        patch.setattr(asyncio.BaseEventLoop, "get_debug", lambda loop: False)
        patch.setenv("PYTHONASYNCIODEBUG", "1")
        yield
