"""What a follower needs of its log and log dir: high watermarks that last, starting over, a batch around the start."""

import pytest

from headrace.cores.producers import ProducerStates
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.ids import ZERO_ID
from headrace.model.log_config import LogConfig
from headrace.records.build import NewRecord, build_batch
from headrace.storage.log_dir import LogDir
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.segment import Segment

NOW_MS = 1_700_000_000_000


def batch_of(count, *, base_offset=0, epoch=0):
    """A batch as a leader numbered it."""
    batch = bytearray(build_batch([NewRecord(timestamp=NOW_MS, value=b"v") for _ in range(count)]))
    batch[0:8] = base_offset.to_bytes(8, "big")
    batch[12:16] = epoch.to_bytes(4, "big")
    return memoryview(batch)


@pytest.fixture
def log_dir():
    """A log dir with one empty log."""
    log_dir = LogDir.open(MemoryFiles(), "/data")
    log_dir.create_log("t-0", topic_id=ZERO_ID, config=LogConfig(), producers=ProducerStates(), now_ms=NOW_MS)
    return log_dir


def load(log_dir):
    """The same dir after a power cut, its one log recovered."""
    log_dir.files.power_cut()
    again = LogDir.open(log_dir.files, "/data")
    report = again.load(
        ["t-0"], config_for=lambda _: LogConfig(), producers_for=lambda _: ProducerStates(), now_ms=NOW_MS
    )
    assert {} == report.failed
    return again, report.logs["t-0"]


def flush(log):
    """Have everything on the disk."""
    job = log.flush_job()
    if job is not None:
        job.run()
        log.flushed(job)


def test_high_watermarks_last(log_dir):
    """Is the high watermark that was written down known after a power cut, and is it not written twice?"""
    log = log_dir.logs["t-0"]
    log.append_follower(batch_of(3), NOW_MS)
    flush(log)
    log.high_watermark = 2
    log_dir.write_high_watermarks()
    before = log_dir.files.read("/data/replication-offset-checkpoint")
    log_dir.files.unlink("/data/replication-offset-checkpoint")
    log_dir.write_high_watermarks()
    assert log_dir.files.stat("/data/replication-offset-checkpoint") is None
    log.high_watermark = 3
    log_dir.write_high_watermarks()

    again, _ = load(log_dir)

    assert b"0\n1\nt 0 2\n" == before
    assert (3, 0) == (again.high_watermark("t-0"), again.high_watermark("other-0"))


def test_new_log_of_an_old_name_knows_no_high_watermark(log_dir):
    """Is the high watermark of a deleted partition not that of the next one of its name?"""
    log_dir.logs["t-0"].high_watermark = 9
    log_dir.write_high_watermarks()
    log_dir.delete_log("t-0")

    log_dir.create_log("t-0", topic_id=ZERO_ID, config=LogConfig(), producers=ProducerStates(), now_ms=NOW_MS)

    assert 0 == log_dir.high_watermark("t-0")


def test_log_starts_over(log_dir):
    """Does a log begin anew, later than it ended, and is that what a power cut leaves?"""
    log = log_dir.logs["t-0"]
    log.append_follower(batch_of(3), NOW_MS)
    flush(log)

    log_dir.start_over(log, 100)
    assert (100, 100, 100) == (log.log_start_offset, log.recovery_point, log.log_end_offset)
    log.append_follower(batch_of(2, base_offset=100, epoch=4), NOW_MS)
    flush(log)
    _, again = load(log_dir)

    assert [] == again.findings
    assert (100, 102, 4) == (again.log_start_offset, again.log_end_offset, again.epoch_at(101))


def test_batch_around_the_start_is_taken_whole(log_dir):
    """Does an empty log that begins amid the leader's batch take that batch, and does any other refuse it?"""
    log = log_dir.logs["t-0"]
    log_dir.start_over(log, 15)

    log.append_follower(batch_of(20, base_offset=1), NOW_MS)

    assert (1, 21) == (log.log_start_offset, log.log_end_offset)
    with pytest.raises(KafkaError):
        log.append_follower(batch_of(20, base_offset=2), NOW_MS)
    assert 21 == log.log_end_offset


def test_epochs_that_wrote_nothing_are_forgotten(log_dir):
    """Does an epoch that began at the log end leave no trace for what another leader sends?"""
    log = log_dir.logs["t-0"]
    log.append_follower(batch_of(3, epoch=1), NOW_MS)
    log.assign_epoch(2, 3)

    log.forget_unwritten_epochs()
    log.append_follower(batch_of(1, base_offset=3, epoch=1), NOW_MS)

    assert (1, 1) == (log.latest_epoch, log.epoch_at(3))


def batches_of(sizes, *, base_offset=0, first_ms=NOW_MS):
    """Batches of a leader that follow each other, of one producer, each a little later than the one before."""
    batches = []
    for number, count in enumerate(sizes):
        records = [NewRecord(timestamp=first_ms + 10 * number, value=bytes(50)) for _ in range(count)]
        sequence = sum(sizes[:number])
        batch = build_batch(records, base_offset=base_offset + sequence, producer_id=7, producer_epoch=0,
                            base_sequence=base_offset + sequence, leader_epoch=number // 3)  # fmt: skip
        batches.append(bytes(batch))
    return batches


def written_by(steps, **config):
    """All files of a log that was given these bytes, step by step, and then closed, with what it knows."""
    log_dir = LogDir.open(MemoryFiles(), "/data")
    producers = ProducerStates()
    log = log_dir.create_log("t-0", topic_id=ZERO_ID, config=LogConfig(**config), producers=producers, now_ms=NOW_MS)
    for step in steps:
        log.append_follower(memoryview(bytearray(step)), NOW_MS)
    log_dir.close(NOW_MS)
    names = [name for name in log_dir.files.listdir("/data/t-0") if name != "partition.metadata"]
    return {name: log_dir.files.read(f"/data/t-0/{name}") for name in names}, producers.entries(), log.log_end_offset


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"index_interval_bytes": 0},
        {"segment_bytes": 4000},
        {"index_interval_bytes": 0, "segment_index_bytes": 64},
        {"segment_ms": 35},
    ],
)
def test_batches_that_come_together(config):
    """Do they leave what they leave one by one: segments, indexes, epochs, producers?"""
    batches = batches_of([3, 1, 7, 20, 2, 2, 5, 30, 1, 1, 4, 9])

    together = written_by([b"".join(batches[:2]), b"".join(batches[2:11]), batches[11]], **config)

    assert written_by(batches, **config) == together
    assert 85 == together[2]


@pytest.fixture
def writes(monkeypatch):
    """The sizes of all writes to segments."""
    sizes = []
    put = Segment._put

    def watched(segment, data, size, position):
        sizes.append(size)
        put(segment, data, size, position)

    monkeypatch.setattr(Segment, "_put", watched)
    return sizes


def test_batches_that_come_together_are_one_write(log_dir, writes):
    """Is the disk asked once for all that came with one answer, where all goes into one segment?"""
    log = log_dir.logs["t-0"]
    batches = batches_of([3, 4, 5, 6])
    log.append_follower(memoryview(batches[0]), NOW_MS)
    log.append_follower(memoryview(batches[1]), NOW_MS)
    writes.clear()

    log.append_follower(memoryview(b"".join(batches[2:])), NOW_MS)

    assert [len(batches[2]) + len(batches[3])] == writes
    assert 18 == log.log_end_offset


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda batch: batch[:-1] + bytes([batch[-1] ^ 1]), ErrorCode.CORRUPT_MESSAGE),
        (lambda batch: batch[:8] + bytes(4) + batch[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda batch: (6).to_bytes(8, "big") + batch[8:], ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_batch_that_is_not_sound(log_dir, harm, code):
    """Is what comes before it kept, and nothing of it or behind it?"""
    log = log_dir.logs["t-0"]
    first, second, third, fourth = batches_of([3, 4, 5, 6])
    log.append_follower(memoryview(first), NOW_MS)

    with pytest.raises(KafkaError) as refusal:
        log.append_follower(memoryview(b"".join((second, harm(third), fourth))), NOW_MS)

    assert code is refusal.value.code
    assert 7 == log.log_end_offset


def test_disk_that_refuses_batches(log_dir):
    """Is a log as it was when batches that came together do not fit on the disk, and does it take them later?"""
    log = log_dir.logs["t-0"]
    batches = batches_of([3, 4, 5, 6])
    log.append_follower(memoryview(batches[0]), NOW_MS)
    log.append_follower(memoryview(batches[1]), NOW_MS)
    log_dir.files.capacity = log_dir.files.used + len(batches[2]) + 10

    with pytest.raises(StorageFault):
        log.append_follower(memoryview(b"".join(batches[2:])), NOW_MS)
    assert (7, 0) == (log.log_end_offset, log.latest_epoch)
    log_dir.files.capacity *= 2
    log.append_follower(memoryview(b"".join(batches[2:])), NOW_MS)

    assert (18, 1) == (log.log_end_offset, log.latest_epoch)
