"""kill -9 while the cleaner rewrites segments: the last value of each key stays, at the offset it always had."""

import contextlib
import os
import random
import threading

import pytest

from crash.load import BACKOFF_S, Acks, Client
from crash.log_reader import batches_from, records_of
from headrace.records.build import NewRecord, build_batch
from wire_client import WireClient

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADRACE_KILLS", "6"))
KILLS_LONG = int(os.environ.get("HEADRACE_KILLS", "60"))
KEYS = 60
PLACE = ("compacted", 0)
EAGER_CLEANER = {"log.cleaner.backoff.ms": "20", "log.cleaner.min.cleanable.ratio": "0.01"}


class Writer(Client):
    """Gives each key ever greater numbers, and remembers which was acknowledged last, where."""

    def __init__(self, port: int, chance: random.Random, acks: Acks) -> None:
        super().__init__("writer", port, [PLACE], chance)
        self.acked: dict[bytes, tuple[int, int]] = {}
        """By key: the number and its offset."""
        self.last = 0
        self._acks = acks
        self._turn = threading.Lock()
        self._waiting = threading.Event()

    def work(self) -> None:
        """Batches of a few keys; one that was not answered is followed by one with greater numbers."""
        client: WireClient | None = None
        while not self.ending.is_set():
            with self._turn:
                try:
                    client = client or WireClient(self.port)
                    self._write(client)
                except OSError:
                    if client is not None:
                        client.close()
                    client = None
            while self._waiting.is_set() and not self.ending.is_set():
                self.ending.wait(BACKOFF_S)
        if client is not None:
            client.close()

    @contextlib.contextmanager
    def paused(self):
        """Nothing is written meanwhile: the log does not grow under a reader."""
        self._waiting.set()
        with self._turn:
            yield
        self._waiting.clear()

    def _write(self, client: WireClient) -> None:
        numbers = {}
        for _ in range(self.chance.randint(1, 20)):
            self.last += 1
            numbers[b"key-%d" % self.chance.randrange(KEYS)] = self.last
        records = [NewRecord(1, key, b"%d-" % number + b"x" * 200, ()) for key, number in numbers.items()]
        result = client.produce("compacted", bytes(build_batch(records)))
        assert result.error_code == 0, result
        for i, (key, number) in enumerate(numbers.items()):
            self.acked[key] = (number, result.base_offset + i)
        self._acks.add(len(records))


class Seen:
    """Every record read so far, by offset: compaction may take one away, never change it."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[bytes, int]] = {}

    def read(self, port: int) -> dict[bytes, tuple[int, int]]:
        """Read the whole partition; the last number of each key and its offset."""
        latest = {}
        last_offset = -1
        with WireClient(port) as client:
            for _, batch in batches_from(client, PLACE, 0):
                for record in records_of(batch):
                    assert record.offset > last_offset, "offsets rise"
                    last_offset = record.offset
                    found = (record.key, int(record.value.partition(b"-")[0]))
                    assert self.records.setdefault(record.offset, found) == found
                    latest[record.key] = (found[1], record.offset)
        return latest


def run(victim, chance, kills: int) -> None:
    """Kill, start, compare; so many times."""
    broker = victim(**EAGER_CLEANER, **{"log.flush.offset.checkpoint.interval.ms": "200"})
    broker.start()
    with WireClient(broker.port) as client:
        settings = {"cleanup_policy": "compact", "internal_segment_bytes": "20000", "file_delete_delay_ms": "100"}
        assert client.create_topic("compacted", **settings).error_code == 0
    acks, seen = Acks(), Seen()
    writer = Writer(broker.port, chance, acks)
    writer.start()
    try:
        for _ in range(kills):
            acks.wait_for_more(chance.randrange(200, 3_000))
            broker.kill()
            if chance.random() < 0.3:
                broker.start_and_kill(chance.uniform(0.2, 0.9))
            broker.start()
            with writer.paused():
                latest = seen.read(broker.port)
                acked = writer.acked.items()
                assert {key: (at, latest.get(key)) for key, at in acked if latest.get(key, (-1, -1)) < at} == {}
    finally:
        writer.ending.set()
        writer.join()
    writer.end()
    latest = seen.read(broker.port)
    assert all(latest[key] >= acked for key, acked in writer.acked.items())
    kept = sum(1 for _ in segment_records(broker))
    print(f"{kills} kills, {acks.count} acked records, {kept} kept")
    assert kept < acks.count / 2, "the cleaner was never at work"
    assert broker.bugs() == []
    assert broker.said("damage_found") + broker.said("partition_offline") == []
    broker.stop()


def segment_records(broker):
    """The records that can be read now."""
    with WireClient(broker.port) as client:
        for _, batch in batches_from(client, PLACE, 0):
            yield from records_of(batch)


def test_kills_while_cleaning(victim, chance):
    """Does every key keep its last acknowledged value, whenever the cleaner is killed?"""
    run(victim, chance, KILLS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_kills_while_cleaning(victim, chance):
    """The same, for longer: does it hold?"""
    run(victim, chance, KILLS_LONG)
