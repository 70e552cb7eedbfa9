"""The control plane of a large cluster, without a socket: what deciding and replaying costs the controller.

    python -m bench.control_plane [--brokers 100] [--partitions 100000]

One process plays the active controller: each command is decided on the state and its records are replayed at once.
What the log and the network add is not measured here.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from headrace.cores.controller import (
    Defaults,
    Heartbeat,
    IsrChange,
    Liveness,
    NewTopic,
    Outcome,
    Policy,
    Registration,
    alter_partitions,
    balance_leaders,
    create_topics,
    fence_stale_broker,
    heartbeat,
    register_broker,
    snapshot_records,
)
from headrace.cores.metadata import Metadata
from headrace.model.metadata_records import FeatureLevelRecord, MetadataRecord
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record

Numbers = dict[str, float]

REPLICATION_FACTOR: Final = 3
PARTITIONS_PER_TOPIC: Final = 100
TOPICS_PER_REQUEST: Final = 50
RACKS: Final = 3
SESSION_MS: Final = 9_000
FEATURES: Final = {"metadata.version": (7, 25), "eligible.leader.replicas.version": (0, 1)}
_MEBIBYTE: Final = 1024 * 1024
_POLICY: Final = Policy(min_insync_replicas=2)


class Stopwatch:
    """How long something took, in milliseconds of this process: nothing here waits, and neighbours do not count."""

    def __enter__(self) -> Self:
        self._began = time.process_time()
        self.ms = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.ms = (time.process_time() - self._began) * 1000


class LargeCluster:
    """A controller's state, and the brokers' part of the conversation."""

    def __init__(self, brokers: int) -> None:
        self.metadata = Metadata()
        self.end_offset = 0
        self.now_ms = 0
        self.commit([FeatureLevelRecord(name=name, feature_level=high) for name, (_, high) in FEATURES.items()])
        self.liveness = Liveness(self.metadata, session_timeout_ms=SESSION_MS, now_ms=self.now_ms)
        for broker_id in range(brokers):
            self.run(self._register, broker_id)
            self.beat(broker_id)

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            self.metadata.replay(record)
        self.end_offset += len(records)

    def run(self, command: Callable[..., Outcome[Any]], *args: Any, **named: Any) -> Outcome[Any]:
        outcome = command(self.metadata, *args, **named)
        self.commit(outcome.records)
        return outcome

    def _register(self, metadata: Metadata, broker_id: int) -> Outcome[int]:
        wanted = Registration(
            broker_id=broker_id,
            cluster_id="bench",
            incarnation_id=UUID(int=1_000_000 + self.end_offset),
            features=FEATURES,
            rack=f"rack-{broker_id % RACKS}",
            log_dirs=(UUID(int=2_000_000 + broker_id),),
        )
        return register_broker(
            metadata,
            self.liveness,
            wanted,
            cluster_id="bench",
            next_offset=self.end_offset,
            now_ms=self.now_ms,
            policy=_POLICY,
        )

    def beat(self, broker_id: int, **fields: Any) -> Outcome[Any]:
        beat = Heartbeat(
            broker_id=broker_id,
            broker_epoch=self.metadata.brokers[broker_id].broker_epoch,
            metadata_offset=self.end_offset - 1,
            **fields,
        )
        named = {"next_offset": self.end_offset, "now_ms": self.now_ms, "policy": _POLICY}
        return self.run(heartbeat, self.liveness, beat, **named)

    def create(self, partitions: int) -> int:
        """Topics of a hundred partitions; how many records they became."""
        before = self.end_offset
        topics = partitions // PARTITIONS_PER_TOPIC
        for first in range(0, topics, TOPICS_PER_REQUEST):
            wanted = [
                NewTopic(
                    name=f"topic-{number}",
                    topic_id=UUID(int=(number + 1) << 64),
                    partitions=PARTITIONS_PER_TOPIC,
                    replication_factor=REPLICATION_FACTOR,
                )
                for number in range(first, min(first + TOPICS_PER_REQUEST, topics))
            ]
            self.run(create_topics, wanted, defaults=Defaults(partitions=1, replication_factor=REPLICATION_FACTOR))
        return self.end_offset - before

    def fall_silent(self, broker_id: int) -> None:
        """All brokers but one are heard of when its session is over."""
        self.now_ms += SESSION_MS + 1
        for other in self.metadata.brokers:
            if other != broker_id:
                self.beat(other)

    def join_isrs(self, broker_id: int) -> int:
        """Every leader takes a broker that has caught up into its ISR; how many partitions that were."""
        by_leader: dict[int, list[IsrChange]] = {}
        for topic_id, index in self.metadata.index.replicas[broker_id]:
            state = self.metadata.topics_by_id[topic_id].partitions[index]
            if broker_id not in state.isr:
                change = IsrChange(
                    topic_id=topic_id,
                    partition=index,
                    leader_epoch=state.leader_epoch,
                    partition_epoch=state.partition_epoch,
                    isr=[(each, self.metadata.brokers[each].broker_epoch) for each in (*state.isr, broker_id)],
                )
                by_leader.setdefault(state.leader, []).append(change)
        for leader, wanted in by_leader.items():
            epoch = self.metadata.brokers[leader].broker_epoch
            self.run(alter_partitions, broker_id=leader, broker_epoch=epoch, wanted=wanted, policy=_POLICY)
        return sum(map(len, by_leader.values()))


def measure_control_plane(*, brokers: int = 100, partitions: int = 100_000) -> Numbers:
    """The life of a large cluster: created, one broker lost and back, a snapshot written and read."""
    gc.collect()
    empty = _resident_bytes()
    cluster = LargeCluster(brokers)
    with Stopwatch() as watch:
        records = cluster.create(partitions)
    numbers: Numbers = {"create ms": watch.ms, "create records": records}
    gc.collect()
    numbers["image MiB"] = (_resident_bytes() - empty) / _MEBIBYTE
    numbers |= _fail_over(cluster, broker_id=brokers // 2)
    numbers |= _controlled(cluster, broker_id=brokers // 3)
    numbers |= _take_over(cluster.metadata)
    return numbers | _snapshot(cluster.metadata)


def _fail_over(cluster: LargeCluster, broker_id: int) -> Numbers:
    led = cluster.metadata.index.leaders[broker_id]
    cluster.fall_silent(broker_id)
    with Stopwatch() as deciding:
        outcome = fence_stale_broker(cluster.metadata, cluster.liveness, now_ms=cluster.now_ms, policy=_POLICY)
    with Stopwatch() as replaying:
        cluster.commit(outcome.records)
    assert broker_id not in cluster.metadata.index.leaders, "somebody else leads"
    assert not cluster.metadata.index.leaderless, "everything has a leader"
    cluster.beat(broker_id)
    with Stopwatch() as joining:
        joined = cluster.join_isrs(broker_id)
    balance = partial(balance_leaders, policy=_POLICY)
    with Stopwatch() as electing:
        while cluster.run(balance).reply:
            pass
    assert led == cluster.metadata.index.leaders[broker_id], "it leads again what it led"
    return {
        "failover partitions led": led,
        "failover records": len(outcome.records),
        "failover decide ms": deciding.ms,
        "failover replay ms": replaying.ms,
        "rejoin ISR partitions": joined,
        "rejoin ISR ms": joining.ms,
        "elect back ms": electing.ms,
    }


def _controlled(cluster: LargeCluster, broker_id: int) -> Numbers:
    with Stopwatch() as watch:
        cluster.beat(broker_id, wants_shutdown=True)
    assert broker_id not in cluster.metadata.index.leaders, "its leaders moved away"
    with Stopwatch() as heartbeats:
        for other in cluster.metadata.brokers:
            cluster.beat(other, wants_shutdown=other == broker_id)
    assert cluster.beat(broker_id, wants_shutdown=True).reply.should_shut_down
    return {"controlled shutdown ms": watch.ms, "heartbeats of all ms": heartbeats.ms}


def _take_over(metadata: Metadata) -> Numbers:
    """What a controller does that is elected, before it decides anything: an image of its own to run ahead with."""
    with Stopwatch() as watch:
        ahead = metadata.copy()
    assert metadata == ahead, "it knows what the one before it knew"
    return {"take over ms": watch.ms}


def _snapshot(metadata: Metadata) -> Numbers:
    with Stopwatch() as writing:
        data = [encode_metadata_record(record) for record in snapshot_records(metadata)]
    gc.collect()
    before = _resident_bytes()
    with Stopwatch() as reading:
        again = _replayed(map(decode_metadata_record, data))
    size = _resident_bytes() - before
    assert metadata == again, "a snapshot is the state"
    return {
        "snapshot records": len(data),
        "snapshot MiB": sum(map(len, data)) / _MEBIBYTE,
        "snapshot write ms": writing.ms,
        "snapshot replay ms": reading.ms,
        "replayed image MiB": size / _MEBIBYTE,
    }


def _replayed(records: Iterable[MetadataRecord]) -> Metadata:
    metadata = Metadata()
    for record in records:
        metadata.replay(record)
    return metadata


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    numbers = measure_control_plane(brokers=options.brokers, partitions=options.partitions)
    if options.json:
        print(json.dumps(numbers))
        return
    for name, value in numbers.items():
        print(f"{name:28} {value:>12,.1f}")


if __name__ == "__main__":
    main()
