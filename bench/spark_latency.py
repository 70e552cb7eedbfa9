"""How long a record takes through a stream: sent by one client at an even pace, met by another behind the stream."""

import struct
import time
from threading import Event, Thread
from typing import Final

from bench.spark_application import WrongAnswer

EVERY_S: Final = 0.07
QUANTILES: Final = {"p50": 0.5, "p99": 0.99}
_STAMP: Final = struct.Struct(">d")
_WARM_UP_S: Final = 5.0
_START_S: Final = 60.0
_END_S: Final = 30.0


def passing_ms(bootstrap: str, origin: str, target: str, *, seconds: float) -> dict[str, float]:
    """Quantiles in milliseconds, after records that are not counted have come through for a while."""
    from headrace import KafkaConsumer  # noqa: PLC0415 - an extra

    pacer = _Pacer(bootstrap, origin)
    taken: list[float] = []
    with KafkaConsumer(
        target, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=int(_START_S * 1000)
    ) as consumer:
        pacer.start()
        try:
            counted_from = None
            for record in consumer:
                now = time.monotonic()
                (sent_at,) = _STAMP.unpack(record.value)
                if counted_from is None:
                    counted_from = now + _WARM_UP_S
                elif sent_at > counted_from + seconds:
                    break
                elif sent_at > counted_from:
                    taken.append(now - sent_at)
        finally:
            pacer.end()
    if not taken:
        raise WrongAnswer(f"nothing came through from {origin} to {target} on {bootstrap}")
    return quantiles_ms(taken)


def quantiles_ms(seconds: list[float]) -> dict[str, float]:
    """The named quantiles of at least one duration."""
    ordered = sorted(seconds)
    return {name: ordered[max(round(quantile * len(ordered)) - 1, 0)] * 1000 for name, quantile in QUANTILES.items()}


class _Pacer(Thread):
    """Sends the time, again and again, until it is told to end."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(name="pacer")
        self._broker = bootstrap
        self._topic = topic
        self._ended = Event()

    def run(self) -> None:
        """Send at an even pace, from a fixed start, so that a late record does not delay those after it."""
        from headrace import KafkaProducer  # noqa: PLC0415 - an extra

        with KafkaProducer(bootstrap_servers=self._broker, linger_ms=0) as producer:
            due, number = time.monotonic(), 0
            while not self._ended.wait(max(due - time.monotonic(), 0)):
                # From when it was due: what the sender is late is waited for by whoever waits for the record.
                producer.send(self._topic, _STAMP.pack(due), key=b"%d" % number)
                due, number = due + EVERY_S, number + 1

    def end(self) -> None:
        """Let the thread come to its end."""
        self._ended.set()
        self.join(_END_S)
