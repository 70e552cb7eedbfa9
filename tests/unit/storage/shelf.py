"""A log on a shelf, with its cleaner: what the cleaner's tests fill, clean and look into."""

from itertools import pairwise
from random import Random
from typing import Any

from headrace.cores.producers import ProducerStates
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.compression import CODEC_NAMES
from headrace.records.walk import walk
from headrace.storage.cleaner import Cleaner, CleanerLimits, CleaningPlan
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles

DIRECTORY = "/data"
DAY = 86_400_000
NOW = 1_700_000_000_000
CONFIG = LogConfig(
    cleanup_compact=True, cleanup_delete=False, segment_bytes=600, index_interval_bytes=100, delete_retention_ms=DAY
)

Kept = dict[int, tuple[int, bytes | None, bytes | None]]


class Shelf:
    """One compacted log in memory, what was ever written to it, and its cleaner."""

    def __init__(self, config: LogConfig = CONFIG, name: str = "table-0", files: MemoryFiles | None = None) -> None:
        self.files = files or MemoryFiles()
        self.name = name
        self.producers = ProducerStates()
        self.written: Kept = {}
        self.slept: list[float] = []
        self.log = self.open(config, recovery_point=0)
        self.cleaner = self.new_cleaner()

    def open(self, config: LogConfig, *, recovery_point: int) -> Log:
        """Open the log as after a crash."""
        self.producers = ProducerStates()
        return Log.open(
            self.files,
            f"{DIRECTORY}/{self.name}",
            config=config,
            now_ms=NOW,
            clean_shutdown=False,
            recovery_point=recovery_point,
            log_start_offset=0,
            producers=self.producers,
        )

    def new_cleaner(self, **limits: Any) -> Cleaner:
        """A cleaner as the broker has one, with a clock of its own."""
        return Cleaner(self.files, DIRECTORY, sleep=self.slept.append, limits=CleanerLimits(**limits))

    def put(self, *pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW, **options: Any) -> int:
        """Append one batch of keys and values."""
        batch = build_batch([NewRecord(timestamp, key, value) for key, value in pairs], **options)
        return self.append(batch)

    def append(self, batch: bytearray) -> int:
        """Append one batch as the leader does."""
        header = read_header(batch)
        offset = self.log.append(memoryview(batch), header, leader_epoch=1, now_ms=NOW)
        aborted = self.producers.replay(read_header(batch), memoryview(batch))
        if aborted is not None:
            self.log.note_aborted(aborted)
        if not header.is_control:
            self.written |= {r.offset: (r.timestamp, _bytes(r.key), _bytes(r.value)) for r in walk(batch)}
        return offset

    def settle(self) -> None:
        """Flush, and let everything be committed."""
        job = self.log.flush_job()
        if job is not None:
            job.run()
            self.log.flushed(job)
        self.log.high_watermark = self.log.log_end_offset
        self.producers.advance(self.log.high_watermark)

    def fill(self, chance: Random, batches: int, *, keys: int = 12, producers: int = 3) -> None:
        """Random batches of a few keys in all codecs, some of them tombstones, by several producers."""
        for _ in range(batches):
            pairs = [
                (
                    b"k%d" % chance.randrange(keys),
                    None if chance.random() < 0.2 else chance.randbytes(chance.randrange(60)),
                )
                for _ in range(chance.randint(1, 4))
            ]
            producer_id = chance.randrange(producers + 1) - 1
            known = {entry.producer_id: entry for entry in self.producers.entries()}.get(producer_id)
            options: dict[str, Any] = {}
            if producer_id >= 0:
                sequence = known.batches[-1].last_sequence + 1 if known else 0
                options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            self.put(*pairs, timestamp=NOW + chance.randrange(1_000), codec=chance.choice(CODEC_NAMES), **options)

    def records(self) -> Kept:
        """Every record in the log, by offset."""
        found: Kept = {}
        for segment in self.log.segments():
            for _, _, batch in segment.batches():
                found |= {r.offset: (r.timestamp, _bytes(r.key), _bytes(r.value)) for r in walk(batch)}
        return found

    def clean(self, now_ms: int = NOW) -> bool:
        """Pick, clean and apply, as often as there is something to do; False if there never was."""
        count = 0
        while (plan := self.cleaner.pick([self.log], now_ms)) is not None:
            self.run(plan)
            count += 1
            assert count < 50, "the cleaner makes no progress"
        return count > 0

    def run(self, plan: CleaningPlan) -> None:
        """One round."""
        for group in self.cleaner.clean(plan):
            for segment in self.cleaner.apply(group):
                segment.remove()


def _bytes(view: memoryview | None) -> bytes | None:
    return None if view is None else bytes(view)


def state(records: Kept) -> dict[bytes | None, bytes]:
    """What a reader of all records knows in the end."""
    table: dict[bytes | None, bytes] = {}
    for offset in sorted(records):
        _, key, value = records[offset]
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return table


def check(shelf: Shelf) -> None:
    """What must be true of a log whatever its cleaner did."""
    kept = shelf.records()

    assert kept.items() <= shelf.written.items()
    assert state(kept) == state(shelf.written)
    segments = shelf.log.segments()
    for segment, following in pairwise(segments):
        last = [last_offset for _, _, last_offset, _ in segment.outlines()][-1]
        assert last + 1 == following.base_offset, "recovery would take this gap for lost data"


def dirty(name: str, batches: int, config: LogConfig = CONFIG, files: MemoryFiles | None = None) -> Shelf:
    """A log with so many batches of one key, settled."""
    shelf = Shelf(config, name, files)
    for _ in range(batches):
        shelf.put((b"k", b"x" * 50))
    shelf.settle()
    return shelf
