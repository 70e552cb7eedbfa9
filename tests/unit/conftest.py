"""What unit tests have besides: event loops that watch themselves."""

import asyncio.constants

import pytest


@pytest.fixture(scope="module", autouse=True)
def _watchful_loops():
    """Asyncio's debug mode finds what was forgotten: futures nobody awaited, callbacks from the wrong thread.

    It adds to the work of a broker, so that only the smallest tests have it; remembering who made a future goes only as
    deep as is needed to know them, because ten frames for each would double that work.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.constants, "DEBUG_STACK_DEPTH", 2)
        patch.setenv("PYTHONASYNCIODEBUG", "1")
        yield
