"""What is measured of groups and transactions: commits, how soon a group is stable, and copying exactly once.

The coordinators' topics flush as the seat says, like every other topic.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final

from bench.load import Load
from bench.seats import Seat
from bench.workloads import MILLION, PARTITIONS, Numbers, broker_cpu, fresh_topic

# A new name every time: the group of the last measurement is still there.
_NAMES: Final = (f"bench-group-{number}" for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """One consumer that commits the offsets of six partitions, one commit after the other or many at once."""

    name: str
    commits: int
    flushed_commits: int
    depends_on_flush: bool = True

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Commits per second and broker CPU, both ways."""
        commits = self.flushed_commits if seat.flushes else self.commits
        numbers: Numbers = {}
        with _coordinators(seat, load), fresh_topic(seat, load, PARTITIONS) as topic:
            for way, wanted in (("sync", commits), ("async", 2 * commits)):
                with broker_cpu(seat) as cpu:
                    rate = load.commit(seat.broker.bootstrap, topic, group=next(_NAMES), way=way, commits=wanted)
                numbers |= {f"{way} commits/s": rate, f"{way} CPU s/M commits": cpu.seconds / wanted * MILLION}
        return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A member joins a group that is at work: how long until every partition has its one owner again?"""

    name: str
    protocol: str
    members: int
    times: int
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """The median of several times, in milliseconds, and broker CPU for all of it."""
        with _coordinators(seat, load), fresh_topic(seat, load, 2 * self.members) as topic, broker_cpu(seat) as cpu:
            median_ms = load.stability(
                seat.broker.bootstrap,
                topic,
                group=next(_NAMES),
                protocol=self.protocol,
                members=self.members,
                times=self.times,
            )
        return {"ms": median_ms, "CPU s": cpu.seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Consume, transform, produce, exactly once."""

    name: str
    records: int
    flushed_records: int
    record_bytes: int
    per_transaction: int
    depends_on_flush: bool = True

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Records per second and broker CPU, from the first record read to the last commit."""
        records = self.flushed_records if seat.flushes else self.records
        where = seat.broker.bootstrap
        with (
            _coordinators(seat, load),
            fresh_topic(seat, load, PARTITIONS) as source,
            fresh_topic(seat, load, PARTITIONS) as copy,
        ):
            load.produce(where, source, records=records, record_bytes=self.record_bytes, properties={})
            with broker_cpu(seat) as cpu:
                rate = load.copy(
                    where, (source, copy), group=next(_NAMES), records=records, per_transaction=self.per_transaction
                )
        return {"records/s": rate, "CPU s/M records": cpu.seconds / records * MILLION}


def warm_up_groups(seat: Seat, load: Load, *, records: int) -> None:
    """Commits and transactions that are not measured, for those who compile their hot paths."""
    where = seat.broker.bootstrap
    with (
        _coordinators(seat, load),
        fresh_topic(seat, load, PARTITIONS) as source,
        fresh_topic(seat, load, PARTITIONS) as copy,
    ):
        for way in ("sync", "async"):
            load.commit(where, source, group=next(_NAMES), way=way, commits=records // 100)
        load.produce(where, source, records=records // 50, record_bytes=100, properties={})
        load.copy(where, (source, copy), group=next(_NAMES), records=records // 50, per_transaction=100)


@contextmanager
def _coordinators(seat: Seat, load: Load) -> Iterator[None]:
    """The coordinators' topics in the seat's flush mode; Kafka's own default again afterwards."""
    load.set_internal_topics(seat.broker.bootstrap, seat.topic_settings)
    yield
    if "flush.messages" in seat.topic_settings:
        load.set_internal_topics(seat.broker.bootstrap, {"flush.messages": str(2**63 - 1)})
