"""A crash at every single file operation of a cleaning: the log is then as before it or as after it, key by key."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from headrace.cores.producers import ProducerStates
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.storage.cleaner import Cleaner
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles

DIRECTORY = "/data"
PATH = f"{DIRECTORY}/table-0"
DAY = 86_400_000
NOW = 1_700_000_000_000
CONFIG = LogConfig(cleanup_compact=True, cleanup_delete=False, segment_bytes=500, index_interval_bytes=100)

Records = dict[int, tuple[bytes, bytes | None]]


class Crash(BaseException):
    """The process is gone; nothing may catch it."""


def open_log(files: MemoryFiles, recovery_point: int) -> Log:
    """The log as a starting broker opens it."""
    log = Log.open(
        files,
        PATH,
        config=CONFIG,
        now_ms=NOW,
        clean_shutdown=False,
        recovery_point=recovery_point,
        log_start_offset=0,
        producers=ProducerStates(),
    )
    log.high_watermark = log.log_end_offset
    return log


def fill(log: Log, chance: Random, batches: int) -> None:
    """A few keys, written over and deleted again and again, all of it flushed."""
    for _ in range(batches):
        records = [
            NewRecord(NOW, b"k%d" % chance.randrange(9), None if chance.random() < 0.3 else chance.randbytes(30))
            for _ in range(chance.randint(1, 3))
        ]
        batch = build_batch(records)
        log.append(memoryview(batch), read_header(batch), leader_epoch=1, now_ms=NOW)
    job = log.flush_job()
    assert job is not None
    job.run()
    log.flushed(job)
    log.high_watermark = log.log_end_offset


def contents(log: Log) -> Records:
    """Every record, by offset."""
    return {
        record.offset: (bytes(record.key or b""), None if record.value is None else bytes(record.value))
        for segment in log.segments()
        for _, _, batch in segment.batches()
        for record in walk(batch)
    }


def state(records: Records) -> dict[bytes, bytes]:
    """What a reader of all records knows in the end."""
    table: dict[bytes, bytes] = {}
    for offset in sorted(records):
        key, value = records[offset]
        table.pop(key, None)
        if value is not None:
            table[key] = value
    return table


def clean(files: MemoryFiles, log: Log, now_ms: int) -> None:
    """A whole round, removals included."""
    cleaner = Cleaner(files, DIRECTORY, sleep=lambda _: None)
    plan = cleaner.pick([log], now_ms)
    if plan is None:
        return
    for group in cleaner.clean(plan):
        for segment in cleaner.apply(group):
            segment.remove()


def prepared(seed: int) -> tuple[MemoryFiles, Log, int]:
    """A log with a clean head whose tombstones are about to expire, a dirty tail, and the time to clean it."""
    files = MemoryFiles()
    files.mkdir(DIRECTORY)
    files.fsync_dir("/")
    log = open_log(files, 0)
    chance = Random(seed)
    fill(log, chance, 12)
    clean(files, log, NOW)
    fill(log, chance, 15)
    return files, log, NOW + 2 * DAY


def crashes(files: MemoryFiles, stride: int) -> Iterator[int]:
    """Arm one crash after the other, until the work gets through without meeting one."""
    for at in range(0, 2_000, stride):
        countdown = [at]

        def before(_operation: str, _path: str, countdown: list[int] = countdown) -> None:
            countdown[0] -= 1
            if countdown[0] < 0:
                raise Crash

        files.before = before
        yield at
        if countdown[0] >= 0:
            return
    raise AssertionError("the work never ends")


@pytest.mark.parametrize("power", ["stays", "cut", "cut with luck"])
def test_a_crash_at_many_steps(power: str) -> None:
    """Is after a crash anywhere, with or without the power, every key's last value there and no offset changed?"""
    crash_and_compare(seed=1, power=power, stride=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("power", ["stays", "cut", "cut with luck"])
def test_a_crash_at_every_step(seed: int, power: str) -> None:
    """The same, leaving no file operation out?"""
    crash_and_compare(seed=seed, power=power, stride=1)


def crash_and_compare(*, seed: int, power: str, stride: int) -> None:
    """Clean the same log again and again with the crash ever later, and look at what a restart finds."""
    outcomes = set()
    armed = MemoryFiles()
    for at in crashes(armed, stride):
        files, log, now_ms = prepared(seed)
        written, end, recovery_point = contents(log), log.log_end_offset, log.recovery_point
        files.before = armed.before
        with suppress(Crash):
            clean(files, log, now_ms)
        files.before = None
        if power != "stays":
            files.power_cut(Random(at) if power == "cut with luck" else None)
        again = open_log(files, Random(at).choice([0, recovery_point]))
        found = contents(again)

        assert again.log_end_offset == end
        assert again.findings == []
        assert found.items() <= written.items()
        assert state(found) == state(written)
        outcomes.add(len(found))
        clean(files, again, now_ms)
        assert state(contents(again)) == state(written)
        assert not [name for name in files.listdir(PATH) if name.endswith((".cleaned", ".swap"))]

    assert len(outcomes) > 2, "some crashes came before the first group, some between groups, some after the last"
