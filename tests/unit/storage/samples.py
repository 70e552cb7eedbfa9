"""Logs, batches and producers in the few forms the storage tests need."""

from headrace.model.log_config import LogConfig
from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.records.batch import BatchHeader, read_header
from headrace.records.build import NewRecord, build_batch
from headrace.storage.log import Log
from headrace.storage.producer_journal import ProducerJournal

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=200, retention_ms=-1)


class Journal(ProducerJournal):
    """A memory of producers that just notes what it is told."""

    first_unstable_offset = 2**63 - 1

    def __init__(self):
        self.loaded: list[ProducerEntry] = []
        self.replayed: list[int] = []
        self.known: list[ProducerEntry] = []

    def load(self, entries):
        self.loaded = list(entries)
        self.known = list(entries)

    def replay(self, header: BatchHeader, view: memoryview):
        assert read_header(view) == header
        self.replayed.append(header.base_offset)

    def entries(self):
        return self.known


def producer(producer_id: int, last_offset: int) -> ProducerEntry:
    """A producer whose last two batches, of one record each, end at an offset."""
    batches = tuple(ProducerBatch(i, i, last_offset - 1 + i, last_offset - 1 + i, 100 + i) for i in range(2))
    return ProducerEntry(producer_id, 3, -1, 101, -1, batches)


def batch(*timestamps: int, size: int = 20, **options) -> bytearray:
    """A batch with one record for each timestamp."""
    return build_batch([NewRecord(timestamp, None, bytes(size)) for timestamp in timestamps or (1000,)], **options)


def open_log(files, path, *, config=CONFIG, clean=False, recovery_point=0, log_start_offset=0, producers=None) -> Log:
    """Open a log as its owner would."""
    log = Log.open(
        files,
        path,
        config=config,
        now_ms=0,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        producers=producers or Journal(),
    )
    log.high_watermark = log.log_end_offset
    return log


def append(log: Log, *timestamps: int, epoch: int = 0, size: int = 20, **options) -> int:
    """Append a batch with one record for each timestamp, and raise the high watermark."""
    made = batch(*timestamps, size=size, **options)
    offset = log.append(memoryview(made), read_header(made), leader_epoch=epoch, now_ms=0)
    log.high_watermark = log.log_end_offset
    return offset


def fill(log: Log, count: int, *, start_ms: int = 1000, size: int = 20) -> None:
    """Append so many batches of one record, a millisecond apart."""
    for i in range(count):
        append(log, start_ms + i, size=size)


def flush(log: Log) -> None:
    """Flush as the owner would."""
    job = log.flush_job()
    if job is not None:
        job.run()
        log.flushed(job)


def read_all(log: Log, *, max_bytes: int = 300) -> list[int]:
    """The base offsets of all batches, as reading the log from its start gives them."""
    offsets: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        span = log.read(offset, max_bytes=max_bytes, limit_offset=log.log_end_offset)
        if not span.size:
            break
        view, position = span.view(), 0
        while position < len(view):
            header = read_header(view, position)
            offsets.append(header.base_offset)
            position += header.size
        offset = span.end_offset
    return offsets
