"""What a broker costs before it does any work: time to start, memory at rest, and both with many partitions."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.load import Load
from bench.workloads import Numbers
from headrace.testing.broker_process import BrokerFailed, BrokerProcess
from headrace.testing.probe import led_partitions

PARTITIONS: Final = 1000
_SETTLE_S: Final = 2.0
_LED_TIMEOUT_S: Final = 60.0
_MEBIBYTE: Final = 1024 * 1024


def measure_footprint(make: Callable[[Path], BrokerProcess], place: Path, load: Load) -> Numbers:
    """Start a fresh broker, look at it, give it 1,000 partitions, look again, and restart it."""
    broker = make(place)
    try:
        broker.format()
        broker.start()  # the first start makes files; what people wait for every day is the second
        broker.stop()
        numbers: Numbers = {"start s": broker.start()}
        numbers |= _memory(broker, "idle")
        load.create_topic(broker.bootstrap, "many", PARTITIONS, {})
        numbers |= _memory(broker, "1,000 partitions")
        broker.stop()
        begin = time.monotonic()
        broker.start()
        _wait_for_leaders(broker)
        numbers["1,000 partitions restart s"] = time.monotonic() - begin
    finally:
        broker.remove()
    return numbers


def _memory(broker: BrokerProcess, prefix: str) -> Numbers:
    time.sleep(_SETTLE_S)
    memory = broker.memory()
    return {f"{prefix} RSS MiB": memory.rss_bytes / _MEBIBYTE, f"{prefix} PSS MiB": memory.pss_bytes / _MEBIBYTE}


def _wait_for_leaders(broker: BrokerProcess) -> None:
    deadline = time.monotonic() + _LED_TIMEOUT_S
    while led_partitions(broker.port) < PARTITIONS:
        if time.monotonic() > deadline:
            raise BrokerFailed(f"{broker.name} leads {led_partitions(broker.port)} of {PARTITIONS} partitions")
        time.sleep(0.01)
