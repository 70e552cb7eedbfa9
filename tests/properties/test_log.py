"""Does a log keep its word through any sequence of appends, flushes, rolls, crashes and full disks?

The model is a list of the batches that were appended. After every crash the log must be a prefix of it that holds
everything flushed, byte for byte, with its producers and leader epochs as a replay of those batches gives them.
"""

import errno
from dataclasses import replace
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.cores.producers import ProducerStates
from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.storage import batch_file, segment
from headrace.storage.log import Log
from headrace.storage.memory_files import MemoryFiles

PATH = "/data/t-0"
CONFIG = LogConfig(
    segment_bytes=1500, index_interval_bytes=200, segment_index_bytes=200, retention_bytes=4000, retention_ms=-1
)


class Stop(BaseException):
    """The machine stops here."""


class LogMachine(RuleBasedStateMachine):
    """A log on a disk that fails, beside a list."""

    CONFIG = CONFIG

    @initialize()
    def start(self):
        self.files = MemoryFiles()
        self.files.mkdir("/data")
        self.files.fsync_dir("/")
        self.batches: list[bytes] = []
        self.flushed_offset = 0
        self.checkpoint = 0
        self.epoch = 0
        self.sequences = [0, 0, 0]
        self.clock = 1_000
        self.job = None
        self.deleted_any = False
        self.reopen(clean=False)

    def reopen(self, *, clean):
        self.job = self.log = None
        self.producers = ProducerStates()
        self.log = Log.open(
            self.files,
            PATH,
            config=self.CONFIG,
            now_ms=self.clock,
            clean_shutdown=clean,
            recovery_point=self.checkpoint,
            log_start_offset=0,
            producers=self.producers,
        )
        self.log.high_watermark = self.log.log_end_offset

    # What the owner does

    @rule(
        sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4),
        producer=st.integers(-1, 2),
        new_epoch=st.booleans(),
        back_ms=st.integers(0, 50),
    )
    def append(self, sizes, producer, new_epoch, back_ms):
        self.clock += 7
        self.epoch += new_epoch
        batch = build_batch(
            [NewRecord(self.clock - back_ms, None, bytes(size), ()) for size in sizes],
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=self.sequences[producer] if producer >= 0 else -1,
        )
        header = read_header(batch)
        base_offset = self.log.append(memoryview(batch), header, leader_epoch=self.epoch, now_ms=self.clock)
        if producer >= 0:
            self.producers.record(header, base_offset, header.max_timestamp)
            self.sequences[producer] += len(sizes)
        self.batches.append(bytes(batch))
        self.log.high_watermark = self.log.log_end_offset

    @rule(count=st.integers(2, 12), producer=st.integers(-1, 2))
    def append_some(self, count, producer):
        for _ in range(count):
            self.append(sizes=[60], producer=producer, new_epoch=False, back_ms=0)

    @rule()
    def flush(self):
        self.begin_flush()
        if self.job is not None:
            self.end_flush()

    @rule()
    def begin_flush(self):
        self.job = self.log.flush_job()

    @precondition(lambda self: self.job is not None)
    @rule()
    def end_flush(self):
        self.job.run()
        self.log.flushed(self.job)
        self.flushed_offset = max(self.flushed_offset, self.log.recovery_point)
        self.job = None

    @rule()
    def write_checkpoint(self):
        self.checkpoint = self.log.recovery_point

    @rule()
    def roll(self):
        self.log.roll(self.clock)

    @rule(times=st.integers(1, 2))
    def rest(self, times):
        for _ in range(times):
            self.log.rest()

    @rule()
    def retain(self):
        for deleted in self.log.delete_old_segments(self.clock):
            self.deleted_any = True
            deleted.remove()

    @rule(data=st.data())
    def truncate(self, data):
        # Only to a batch's start: that is where leader epochs begin and end.
        starts = [read_header(batch).base_offset for batch in self.batches]
        candidates = [start for start in starts if start > self.log.log_start_offset]
        if candidates:
            offset = data.draw(st.sampled_from(candidates))
            self.checkpoint = min(self.checkpoint, offset)
            self.flushed_offset = min(self.flushed_offset, offset)
            self.log.truncate_to(offset)
            self.batches = self.batches[: starts.index(offset)]
            self.forget_producers()

    # What the world does

    @rule(torn=st.integers(0, 100))
    def full_disk(self, torn):
        """A write that finds no room must change nothing; one into room that was made before is like any other."""
        batch = build_batch([NewRecord(self.clock, None, bytes(150), ())])
        end_offset = self.log.log_end_offset
        room = self.log.segments()[-1]._file_end - self.log.segments()[-1].size
        self.files.capacity = self.files.used + torn
        try:
            self.log.append(memoryview(batch), read_header(batch), leader_epoch=self.epoch, now_ms=self.clock)
        except StorageFault:
            assert end_offset == self.log.log_end_offset
        else:
            assert room + torn >= len(batch)
            self.batches.append(bytes(batch))
            self.log.high_watermark = self.log.log_end_offset
        self.files.capacity = 1 << 40

        assert self.log.fault is None

    @rule()
    def kill(self):
        """The process dies; the page cache does not."""
        self.reopen(clean=False)
        self.check_recovered(at_least=len(self.batches))

    @rule(seed=st.integers(0, 2**32))
    def power_cut(self, seed):
        self.files.power_cut(Random(seed) if seed else None)
        self.reopen(clean=False)
        self.check_recovered()

    @rule(seed=st.integers(0, 2**32))
    def power_cut_twice(self, seed):
        """Recovery itself is cut off at some step, then the power comes back for good."""
        chance = Random(seed)
        self.files.power_cut(chance)
        steps = chance.randint(1, 40)

        def stop(operation, path):
            nonlocal steps
            steps -= 1
            if steps == 0:
                raise OSError(errno.EIO, "cut off", path)

        self.files.before = stop
        try:
            self.reopen(clean=False)
        except StorageFault:
            pass
        finally:
            self.files.before = None
        self.files.power_cut(chance)
        self.reopen(clean=False)
        self.check_recovered()

    @rule(seed=st.none() | st.integers(0, 2**32))
    def restart_cleanly(self, seed):
        self.log.close(self.clock)
        self.flushed_offset = self.checkpoint = self.log.recovery_point

        assert self.log.recovery_point == self.log.log_end_offset

        if seed is not None:
            self.files.power_cut(Random(seed) if seed else None)
        self.reopen(clean=True)
        self.check_recovered(at_least=len(self.batches))

    @rule(what=st.sampled_from(["append", "flush", "roll", "retain", "truncate", "close"]), seed=st.integers(0, 2**32))
    def crash_amid(self, what, seed):
        """The machine stops at some step inside an operation, losing its page cache or not."""
        chance = Random(seed)
        steps = chance.randint(1, 25)

        def stop(operation, path):
            nonlocal steps
            steps -= 1
            if steps == 0:
                raise Stop

        self.files.before = stop
        try:
            self.do(what, chance)
        except Stop:
            pass
        finally:
            self.files.before = None
        if chance.random() < 0.8:
            self.files.power_cut(chance)
        self.reopen(clean=False)
        self.check_recovered()

    def do(self, what, chance):
        match what:
            case "append":
                self.append_some(count=10, producer=chance.randint(-1, 2))
            case "flush":
                self.flush()
            case "roll":
                self.roll()
            case "retain":
                self.deleted_any = True
                self.retain()
            case "close":
                self.log.close(self.clock)
            case "truncate":
                starts = [read_header(batch).base_offset for batch in self.batches]
                offset = chance.choice([start for start in starts if start > self.log.log_start_offset] or [0])
                self.checkpoint = min(self.checkpoint, offset)
                self.flushed_offset = min(self.flushed_offset, offset)
                self.log.truncate_to(offset)

    def check_recovered(self, at_least=0):
        """The log is a prefix of the model with everything flushed in it; from now on the model is that prefix."""
        log = self.log
        assert log.findings == []
        assert log.log_end_offset >= self.flushed_offset
        self.batches = [batch for batch in self.batches if read_header(batch).base_offset < log.log_end_offset]
        assert len(self.batches) >= at_least
        self.flushed_offset = min(self.flushed_offset, log.log_end_offset)
        self.forget_producers()

    def forget_producers(self):
        """Sequences go on from what the log still has."""
        replayed = ProducerStates()
        for batch in self.batches:
            replayed.replay(read_header(batch), memoryview(batch))
        if not self.deleted_any:
            assert sorted(replayed.entries()) == sorted(self.producers.entries())
        last = {entry.producer_id: entry.batches[-1].last_sequence + 1 for entry in replayed.entries()}
        self.sequences = [last.get(producer, 0) for producer in range(3)]
        self.epoch = max([self.epoch, *(read_header(batch).leader_epoch for batch in self.batches)])

    # What must always hold

    @invariant()
    def marks_are_in_order(self):
        if hasattr(self, "log"):
            log = self.log

            assert log.log_start_offset <= log.recovery_point <= log.log_end_offset
            assert log.size_bytes == sum(segment.size for segment in log.segments())

    @invariant()
    def everything_reads_back(self):
        if hasattr(self, "log"):
            log = self.log
            expected = [batch for batch in self.batches if read_header(batch).base_offset >= log.log_start_offset]
            read = b""
            offset = log.log_start_offset
            while offset < log.log_end_offset:
                span = log.read(offset, max_bytes=400, limit_offset=log.log_end_offset)
                assert span.size > 0
                read += bytes(span.view())
                offset = span.end_offset

            assert b"".join(expected) == read

    @rule(data=st.data())
    def any_read_begins_with_its_batch(self, data):
        log = self.log
        if log.log_start_offset == log.log_end_offset:
            return
        offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset - 1))
        limit = data.draw(st.integers(log.log_start_offset, log.log_end_offset))
        span = log.read(offset, max_bytes=data.draw(st.integers(0, 2000)), limit_offset=limit)
        if span.size:
            header = read_header(span.view())

            assert header.base_offset == span.base_offset <= offset <= header.last_offset
            assert span.end_offset <= limit or span.base_offset < limit
        else:
            assert all(
                read_header(batch).last_offset >= limit
                for batch in self.batches
                if read_header(batch).last_offset >= offset
            )

    @rule(data=st.data())
    def timestamps_are_found(self, data):
        log = self.log
        target = data.draw(st.integers(900, self.clock + 10))
        headers = [read_header(batch) for batch in self.batches]
        late = [h for h in headers if h.base_offset >= log.log_start_offset and h.max_timestamp >= target]
        found = log.offset_for_timestamp(target)

        assert (found is None) == (not late)
        if found is not None:
            assert late[0].base_offset <= found[1] <= late[0].last_offset
            assert found[0] >= target

    @invariant()
    def epochs_are_known(self):
        if not hasattr(self, "log"):
            return
        log = self.log
        headers = [h for h in map(read_header, self.batches) if h.base_offset >= log.log_start_offset]
        starts = {h.leader_epoch: h.base_offset for h in reversed(headers)}
        ends = [*list(starts.values())[-2::-1], log.log_end_offset]
        for epoch, end_offset in zip(sorted(starts), ends, strict=False):
            assert log.end_offset_for_epoch(epoch) == (epoch, end_offset)


class MappedLogMachine(LogMachine):
    """The same with every read from a mapping, and one view of each kept: no file may shrink under it."""

    @initialize()
    def start(self):
        self.usual = batch_file._MAP_MIN, batch_file._MAP_STEP
        batch_file._MAP_MIN, batch_file._MAP_STEP = 1, 300
        self.views = []
        super().start()

    def reopen(self, *, clean):
        # The process that looked is no more.
        self.views.clear()
        super().reopen(clean=clean)

    def teardown(self):
        if hasattr(self, "usual"):
            batch_file._MAP_MIN, batch_file._MAP_STEP = self.usual

    @rule(data=st.data())
    def keep_a_view(self, data):
        if self.log.log_end_offset > self.log.log_start_offset:
            offset = data.draw(st.integers(self.log.log_start_offset, self.log.log_end_offset - 1))
            view = self.log.read(offset, max_bytes=1, limit_offset=self.log.log_end_offset).view()
            self.views.append((view, bytes(view)))

    @rule()
    def drop_a_view(self):
        if self.views:
            self.views.pop(0)

    @invariant()
    def views_stay_as_they_were(self):
        if hasattr(self, "views"):
            assert all(view == then for view, then in self.views)


class LogOnZerosMachine(LogMachine):
    """The same with files that are longer than their batches from early on, by zeros."""

    CONFIG = replace(CONFIG, segment_bytes=3000)

    @initialize()
    def start(self):
        self.usual = segment._ROOM_FROM_BYTES, segment.ZEROS_MAX
        segment._ROOM_FROM_BYTES, segment.ZEROS_MAX = 150, 1000
        super().start()

    def teardown(self):
        if hasattr(self, "usual"):
            segment._ROOM_FROM_BYTES, segment.ZEROS_MAX = self.usual

    @invariant()
    def behind_the_batches_are_zeros(self):
        if hasattr(self, "log"):
            active = self.log.segments()[-1]
            data = self.files.read(active.path())

            assert len(data) == active._file_end
            assert not any(data[active.size :])


LogMachine.TestCase.settings = settings(stateful_step_count=40, max_examples=settings().max_examples * 3)
MappedLogMachine.TestCase.settings = settings(stateful_step_count=30, max_examples=settings().max_examples)
LogOnZerosMachine.TestCase.settings = settings(stateful_step_count=40, max_examples=settings().max_examples * 2)
TestLog = LogMachine.TestCase
TestMappedLog = MappedLogMachine.TestCase
TestLogOnZeros = LogOnZerosMachine.TestCase
