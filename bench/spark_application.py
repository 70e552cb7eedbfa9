"""One Spark application with both data sources in it: ours, and Spark's own connector where it can be had.

What a query costs is the CPU of the driver's JVM, of all Python processes under it, and of this process, which drives
it; the broker's is not in it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.spark_cpu import Accounts
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.spark_jars import CONNECTOR_VERSION, connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS: Final = "headrace"
CONNECTOR: Final = "kafka"
"""The names of the data sources, as `format()` takes them."""
_CORES: Final = 2
_SETTINGS: Final = {"spark.driver.memory": "2g", "spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR"}


class WrongAnswer(Exception):
    """A query did not see the records that are there; its speed is of no interest."""


@dataclass(slots=True)
class Cost:
    """What a `with` block took, known when it has ended."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Application:
    """A running Spark session, and what it may be asked to compare."""

    spark: "SparkSession"
    accounts: Accounts
    place: Path
    sources: tuple[str, ...]
    _turns: Iterator[int] = field(default_factory=count)
    _checkpoints: Iterator[int] = field(default_factory=count)

    def turn(self) -> tuple[str, ...]:
        """The data sources, the other way round every time: whoever comes second finds a warmer machine."""
        return self.sources if next(self._turns) % 2 == 0 else self.sources[::-1]

    def checkpoint(self) -> str:
        """A directory nobody has used."""
        return str(self.place / f"checkpoint-{next(self._checkpoints)}")

    @contextmanager
    def cost(self) -> Iterator[Cost]:
        """Seconds and CPU seconds of a block."""
        used = Cost()
        before, begin = self._cpu_seconds(), time.monotonic()
        yield used
        used.seconds = time.monotonic() - begin
        used.cpu_seconds = self._cpu_seconds() - before

    def _cpu_seconds(self) -> float:
        return self.accounts.seconds() + self.accounts.own_seconds()


@contextmanager
def application(place: Path) -> Iterator[Application]:
    """Start Spark, with the connector if there is one, and end it."""
    from headrace.spark.session import spark_session  # noqa: PLC0415 - an extra

    place.mkdir()
    settings = dict(_SETTINGS)
    sources: tuple[str, ...] = (CONNECTOR, OURS)
    try:
        settings["spark.jars"] = ",".join(map(str, connector_jars()))
    except PeerUnavailable as missing:
        print(f"Spark's own connector {CONNECTOR_VERSION} cannot be had ({missing}); ours is measured alone.")
        sources = (OURS,)
    spark = spark_session("headrace bench", master=f"local[{_CORES}]", conf=settings)
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - nobody else knows the JVM's process id
    accounts = Accounts(gateway.proc.pid)
    try:
        yield Application(spark=spark, accounts=accounts, place=place, sources=sources)
    finally:
        accounts.close()
        spark.stop()
