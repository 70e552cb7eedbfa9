"""A broker as a process: settings in, signals handled, exit code out."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from typing import TYPE_CHECKING, Any

from headrace.broker import allocator
from headrace.broker.broker import Broker
from headrace.model.errors import HeadraceError
from headrace.settings.broker import BrokerConfig
from headrace.storage.files import RealFiles

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)


class BrokerBroken(HeadraceError):
    """A node of several lost its metadata log or all its log dirs: others do its work."""


FILES_OPEN_WANTED = 100_000
GARBAGE_THRESHOLDS = (50_000, 20, 50)
"""Containers made before the collector looks at the young ones, and how many looks before it turns to older ones."""
THREAD_TURN_S = 0.0005
"""How long the loop may keep a thread that has flushed waiting for the interpreter; Python's own 5 ms show in acks."""


def run(config_path: Path, overrides: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit code says how it ended."""
    assert __debug__, "the broker relies on assertions: do not run it with -O"
    _log_to_output()
    try:
        config = BrokerConfig.load(config_path, overrides)
        for warning in config.warnings:
            logger.warning(warning)
        _raise_file_limit()
        allocator.fix_thresholds()
        _run(_serve(config))
    except BrokerBroken as reason:
        logger.error("broker_failed reason=%s", reason)  # noqa: TRY400
        return 1
    except HeadraceError as error:
        logger.error("start_failed reason=%s", error)  # noqa: TRY400 - a person reads this; the traceback helps nobody
        return 1
    return 0


def _run(main: Coroutine[object, object, None]) -> None:
    """On uvloop where there is one."""
    try:
        import uvloop  # noqa: PLC0415 - not on Windows
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def _serve(config: BrokerConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    broker = Broker(config, files=RealFiles())
    starting = asyncio.ensure_future(broker.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if broker.is_waiting:
        # For others, who may never come.
        starting.cancel()
    # A signal during recovery waits for it: what has been read need not be read again.
    try:
        await starting
        _settle()
        await _end(broker, stopping)
        logger.info("stopping node=%d", broker.node_id)
    except asyncio.CancelledError:
        logger.info("start_given_up node=%d", broker.node_id)
    finally:
        stopping.cancel()
        await broker.stop()


async def _end(broker: Broker, stopping: asyncio.Task[Any]) -> None:
    """Wait until the node is told to stop; BrokerBroken if it cannot go on."""
    breaking: asyncio.Task[Any] = asyncio.ensure_future(broker.broken.wait())
    await asyncio.wait({stopping, breaking}, return_when=asyncio.FIRST_COMPLETED)
    breaking.cancel()
    if broker.broken.is_set() and not stopping.done():
        raise BrokerBroken(f"{broker.broken_because} The node stops; the log has the cause.")


def _settle() -> None:
    """Take what was made at the start out of the garbage collector's sight: looking it through stops the loop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    sys.setswitchinterval(THREAD_TURN_S)


def _log_to_output() -> None:
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stdout,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )


def _raise_file_limit() -> None:
    """Partitions and connections are files: take as many as the system lets us."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_OPEN_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_OPEN_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
