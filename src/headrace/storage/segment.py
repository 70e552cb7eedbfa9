"""One file of batches with its indexes: the log's unit of rolling, deleting, flushing and mapping.

A segment knows bytes and positions; which offsets may be read, and when to roll, the log decides. Only the log's owner
appends; any thread may read.
"""

from collections.abc import Sequence

from headrace.model.log_config import LogConfig
from headrace.records.batch import BatchHeader
from headrace.storage import file_names
from headrace.storage.batch_file import MAGIC, OUTLINE, OUTLINE_BYTES, WALK_BYTES, BatchFile
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import ZEROS_MAX, Bytes, File, Files, write_all
from headrace.storage.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from headrace.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from headrace.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from headrace.storage.time_index import TimeIndex
from headrace.storage.transaction_file import TransactionFile

NO_TIMESTAMP = -1

_PENDING_ENTRIES_MAX = 512
"""Index entries that wait in memory before a flush takes them to the file."""
_INDEX_STATE = (
    "_offset_written",
    "_time_written",
    "_bytes_since_entry",
    "_first_timestamp",
    "_max_timestamp",
    "_max_timestamp_offset",
    "index_full",
    "_time_index",
    "_offset_index",
)
"""All that is made anew with the indexes; those themselves come last, as others look whether they are there."""
_ROOM_FROM_BYTES = 256 * 1024
"""Segments up to this size are given no room ahead: most partitions of a cluster stay small."""
_ZEROS_MIN = 4096
_WRITES_AHEAD = 16
"""Zeros are for so many writes like the one before them, or up to twice that: who flushes each of them waits for the
zeros too, so many at once would cost a slow writer more than they save."""
_ROUND_BYTES = 2 * 1024 * 1024
"""The largest page that a file is kept in, on the machines we know."""
_SMALL_BYTES = 64 * 1024
"""A segment up to this size is looked through at once: waking a thread for each of many would cost more."""


class Segment(BatchFile):
    """A `.log` file from one base offset on."""

    __slots__ = (
        "_bytes_since_entry",
        "_file_end",
        "_first_timestamp",
        "_found_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_offset_written",
        "_rested_at",
        "_room_end",
        "_time_index",
        "_time_written",
        "aborted",
        "bytes_max",
        "created_ms",
        "index_bytes_max",
        "index_full",
        "index_interval_bytes",
        "indexes_flushed",
        "room_bytes",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, *, size: int, suffix: str = "") -> None:
        super().__init__(files, directory, base_offset, size=size, suffix=suffix)
        self.aborted = TransactionFile(self)
        self._found_bytes = size
        """How much there was already, written by another process or long ago."""
        self.created_ms = 0
        self.indexes_flushed = True
        """Whether the index files, as far as they are written, are known to be on the disk."""
        self.index_interval_bytes = 4096
        self.index_bytes_max = 10 * 1024 * 1024
        self.index_full = False
        self.bytes_max = 2**31 - 1
        self.room_bytes = 0
        self._room_end = max(size, _ROOM_FROM_BYTES)
        """How far the file may grow before it is given more room."""
        self._file_end = size
        """How long the file is; what lies behind `size` are zeros."""
        self._rested_at = -1
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._offset_written = 0
        self._time_written = 0
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, *, now_ms: int, suffix: str = "") -> "Segment":
        """Make an empty segment's files; none is left behind if one cannot be made."""
        segment = cls(files, directory, base_offset, size=0, suffix=suffix)
        try:
            for kind in (file_names.OFFSET_INDEX, file_names.TIME_INDEX):
                files.open(segment.path(kind), create=True)
            segment._file = files.open(segment.path(), create=True)
        except OSError:
            for kind in (file_names.LOG, file_names.OFFSET_INDEX, file_names.TIME_INDEX):
                files.unlink(segment.path(kind))
            raise
        segment._offset_index = OffsetIndex(base_offset)
        segment._time_index = TimeIndex(base_offset)
        segment.created_ms = now_ms
        segment.indexes_flushed = False
        return segment

    def configure(self, config: LogConfig) -> None:
        """Take over what the topic's settings say about indexes and room."""
        self.index_interval_bytes = config.index_interval_bytes
        self.index_bytes_max = config.segment_index_bytes
        self.bytes_max = config.segment_bytes
        self.room_bytes = config.segment_preallocate_bytes

    # Writing

    def append(self, data: Bytes, last_offset: int, max_timestamp: int) -> None:
        """Write whole batches at the end; HOT. OSError leaves the segment as it was; if that fails too: CorruptLog."""
        position = self.size
        self._put(data, len(data), position)
        self._count(len(data), last_offset, max_timestamp, position)

    def append_run(self, data: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Write several batches at the end with one call, `data` beginning with them; errors as in `append`."""
        position = self.size
        size = sum(header.size for header in headers)
        self._put(data[:size], size, position)
        for header in headers:
            self._count(header.size, header.last_offset, header.max_timestamp, position)
            position += header.size

    def _put(self, data: Bytes, size: int, position: int) -> None:
        file = self._file
        if file is None:
            file = self.file
        if self._time_index is None:
            # Now, because once the batch is written nothing may fail any more.
            self.load_indexes()
        try:
            taken = file.pwrite(data, position) if position + size <= self._file_end else self._lengthen(data, position)
            if taken < size:
                self._write_rest(data, position, taken)
                self._file_end = max(self._file_end, position + size)
        except OSError:
            self._undo(position)
            self._file_end = position
            raise

    def _lengthen(self, data: Bytes, position: int) -> int:
        """Write where the file gets longer, and zeros behind it; answers how many bytes were taken of both.

        What comes next is then written over zeros: into large pages that are there already, and with nothing for a
        flush to note but the bytes themselves (docs/decisions/0015-zeros-ahead.md).
        """
        size, file = len(data), self.file
        end = position + size
        if end > self._room_end:
            self._make_room(file, position, size)
        zeros = 0
        if position >= _ROOM_FROM_BYTES and size < ZEROS_MAX:
            unit = min(ZEROS_MAX, max(_ZEROS_MIN, 1 << (_WRITES_AHEAD * size).bit_length()))
            zeros = min(-end % unit, self.room_bytes, max(0, self.bytes_max - end))
        taken = file.pwrite_ahead(data, position, zeros) if zeros else file.pwrite(data, position)
        self._file_end = position + taken
        return taken

    def _make_room(self, file: File, position: int, size: int) -> None:
        """Have the disk set room aside for what is to be written and as much again as there is: small logs stay small.

        With what is to be written, which else comes to lie by itself, and up to a round number: the kernel reads ahead
        in large pages, and one that lies in two places on the disk it reads block by block.
        """
        end = position + size
        ahead = min(end, self.room_bytes)
        self._room_end = end + _ROOM_FROM_BYTES
        if ahead:
            unit = min(1 << ahead.bit_length() - 1, _ROUND_BYTES)
            self._room_end = (end + ahead) // unit * unit
            file.reserve(position, self._room_end - position)

    def _count(self, size: int, last_offset: int, max_timestamp: int, position: int) -> None:
        """A batch was written at `position`."""
        self.size = position + size
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        since = self._bytes_since_entry
        if since > self.index_interval_bytes:
            self._add_entry(last_offset, position)
            since = 0
        self._bytes_since_entry = since + size

    def can_index(self, batches: int) -> bool:
        """Whether the indexes surely have room for so many entries more."""
        index, times = self._offset_index, self._time_index
        return (
            index is not None
            and times is not None
            and (len(index) + batches) * OFFSET_ENTRY_BYTES <= self.index_bytes_max
            and (len(times) + batches + 1) * TIME_ENTRY_BYTES <= self.index_bytes_max
        )

    def _add_entry(self, last_offset: int, position: int) -> None:
        """Note the batch at `position` in both indexes; HOT, as most batches are larger than the interval."""
        index, times = self._offset_index, self._time_index
        if index is None or times is None:
            index, times = self.load_indexes()
        offsets_count = index.append(last_offset, position)
        times_count = times.append(self._max_timestamp, self._max_timestamp_offset)
        # One slot of the time index stays free for the entry that sealing adds.
        self.index_full = (
            (offsets_count + 1) * OFFSET_ENTRY_BYTES > self.index_bytes_max
            or (times_count + 2) * TIME_ENTRY_BYTES > self.index_bytes_max
        )  # fmt: skip

    def can_hold(self, last_offset: int) -> bool:
        """Whether an offset still fits the indexes' four bytes."""
        return last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def seal(self) -> None:
        """Write the indexes as they should lie on the disk: the greatest timestamp last, and nothing behind it."""
        self._write_aborted()
        index, times = self._offset_index, self._time_index
        if index is None or times is None:
            return
        if self._file_end > self.size or (self.room_bytes and self.size > _ROOM_FROM_BYTES):
            self.end_at(self.size)
        times.append(self._max_timestamp, self._max_timestamp_offset)
        if self._offset_written != len(index) or self._time_written != len(times):
            self._write_indexes(index, times).truncate(len(times) * TIME_ENTRY_BYTES)

    def end_at(self, position: int) -> None:
        """Cut the file there, which also gives back what was set aside beyond; a flush makes it last."""
        self.file.truncate(position)
        self.size = self._file_end = position
        self._room_end = max(position, _ROOM_FROM_BYTES)

    def rest(self) -> bool:
        """Told now and then: if nothing came since the last time, the file ends with its batches again."""
        if self._file_end == self.size:
            return False
        is_quiet = self._rested_at == self.size
        self._rested_at = self.size
        if is_quiet:
            self.end_at(self.size)
        return is_quiet

    def write_pending_entries(self) -> None:
        """Take entries that only memory knows to the files, once it is worth opening them; any thread."""
        self._write_aborted()
        index, times = self._offset_index, self._time_index
        if index is not None and times is not None and len(index) - self._offset_written >= _PENDING_ENTRIES_MAX:
            self._write_indexes(index, times)

    def _write_aborted(self) -> None:
        if self.aborted.write():
            self.indexes_flushed = False

    def _write_indexes(self, index: OffsetIndex, times: TimeIndex) -> File:
        data = index.encode(self._offset_written)
        self._write_index(file_names.OFFSET_INDEX, data, self._offset_written * OFFSET_ENTRY_BYTES)
        self._offset_written += len(data) // OFFSET_ENTRY_BYTES
        data = times.encode(self._time_written)
        file = self._write_index(file_names.TIME_INDEX, data, self._time_written * TIME_ENTRY_BYTES)
        self._time_written += len(data) // TIME_ENTRY_BYTES
        return file

    def _write_index(self, kind: str, data: bytes, position: int) -> File:
        self.indexes_flushed = False
        file = self.files.open(self.path(kind), create=position == 0)
        write_all(file, data, position)
        return file

    def flush(self, *, with_indexes: bool) -> None:
        """Wait until the batches (and the sealed indexes) are on the disk; blocking."""
        try:
            self.file.fdatasync()
            if with_indexes:
                for kind in (file_names.OFFSET_INDEX, file_names.TIME_INDEX):
                    self.files.open(self.path(kind)).fdatasync()
                self.aborted.flush()
                self.indexes_flushed = True
        except FileNotFoundError:
            # A truncation or retention may have taken the segment while its flush was waiting for a thread.
            if not self.removed:
                raise

    # Indexes

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, read or rebuilt on first use."""
        index = self._offset_index
        return self.load_indexes()[0] if index is None else index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, read or rebuilt on first use."""
        times = self._time_index
        return self.load_indexes()[1] if times is None else times

    def load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Read both indexes, or rebuild them from the batches where the files cannot be right."""
        assert self.aborted.index is not None, "read with the others, so that an append cannot fail for it"
        index = self._read_offset_index()
        times = self._read_time_index()
        if index is None or times is None:
            return self.rebuild_indexes()
        last = times.last()
        if last is not None:
            self._max_timestamp, self._max_timestamp_offset = last
        self._offset_index, self._time_index = index, times
        self._offset_written, self._time_written = len(index), len(times)
        self._bytes_since_entry = self.size - (index.entry(-1)[1] if len(index) else 0)
        # Retention believes the last entry, so a wrong one could cost the whole segment.
        if last is not None and not self._has_timestamp(*last):
            return self.rebuild_indexes()
        return index, times

    def _read_offset_index(self) -> OffsetIndex | None:
        data = self._read_index(file_names.OFFSET_INDEX)
        if data is None:
            return None
        index = OffsetIndex.decode(data, base_offset=self.base_offset, log_bytes=self.size)
        if index is not None and len(index):
            # Every entry names its batch's last offset, so the last one can be held against the log itself.
            offset, position = index.entry(-1)
            header = self.header_at(position)
            if header is None or header.last_offset != offset:
                return None
        return index

    def _read_time_index(self) -> TimeIndex | None:
        data = self._read_index(file_names.TIME_INDEX)
        if data is None or (not data and self.size):
            return None
        return TimeIndex.decode(data, base_offset=self.base_offset)

    def _read_index(self, kind: str) -> bytes | None:
        if self.size == 0:
            return b""
        try:
            return self.read_file(kind)
        except FileNotFoundError:
            return None

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Make both indexes anew from the batches' headers; blocking. CorruptLog if those cannot be indexed."""
        # On the side, because others read on meanwhile, and half an index would hide the harm from the next who asks.
        twin = Segment(self.files, self.directory, self.base_offset, size=self.size, suffix=self.suffix)
        twin.index_interval_bytes, twin.index_bytes_max = self.index_interval_bytes, self.index_bytes_max
        twin.reset_indexes()
        next_offset = self.base_offset
        try:
            for position, header in self.headers():
                if header.base_offset < next_offset or not self.can_hold(header.last_offset):
                    raise CorruptLog(f"{self.path()}: offset {header.base_offset} cannot be at {position}")
                twin.note(position, header)
                next_offset = header.last_offset + 1
        except CorruptLog:
            self._offset_index = self._time_index = None
            raise
        for name in _INDEX_STATE:
            setattr(self, name, getattr(twin, name))
        return self.offset_index, self.time_index

    def reset_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Forget all entries; the files are rewritten from the start."""
        index = self._offset_index = OffsetIndex(self.base_offset)
        times = self._time_index = TimeIndex(self.base_offset)
        self._offset_written = self._time_written = 0
        self._bytes_since_entry = 0
        self._first_timestamp = None
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        return index, times

    def note(self, position: int, header: BatchHeader) -> None:
        """Index a batch that is in the file already, as appending it would have."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if position == 0:
            self._first_timestamp = header.max_timestamp
        if self._bytes_since_entry > self.index_interval_bytes:
            self._add_entry(header.last_offset, position)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.size

    def offset_before_time(self, timestamp: int) -> int:
        """An offset before which no record is as late as `timestamp`; the start where the log contradicts the index."""
        known, offset = self.time_index.lookup(timestamp)
        return offset if known < 0 or self._has_timestamp(known, offset) else self.base_offset

    def _has_timestamp(self, timestamp: int, offset: int) -> bool:
        """Whether the batch with `offset` says the same as an entry of the time index; True where it cannot be read."""
        try:
            found = self.find(offset)
            header = None if found is None else self.header_at(found[0])
        except CorruptLog:
            return True
        return header is not None and header.base_offset <= offset and header.max_timestamp == timestamp

    def max_timestamp(self) -> tuple[int, int]:
        """The greatest timestamp in the segment (-1 if none) and the last offset of the first batch that has it."""
        if self._time_index is None:
            self.load_indexes()
        return self._max_timestamp, self._max_timestamp_offset

    def first_timestamp(self) -> int:
        """The first batch's timestamp, from which segment.ms counts; -1 if there is none."""
        if self._first_timestamp is None:
            header = self.header_at(0)
            if header is None:
                return NO_TIMESTAMP
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    # Reading

    def find(self, offset: int) -> tuple[int, int, int, int] | None:
        """The first batch that ends at `offset` or later (as `outlines` gives it), or None if all end before it."""
        for outline in self.outlines(self.position_before(offset)):
            if outline[2] >= offset:
                return outline
        return None

    def position_before(self, offset: int) -> int:
        """A batch from which walking on meets `offset`; an index that the log contradicts is made anew."""
        last_offset, position = self.offset_index.lookup(offset)
        if position == 0:
            return 0
        header = self.header_at(position)
        if header is not None and header.last_offset == last_offset:
            return position
        self.rebuild_indexes()
        return 0

    def is_at_hand(self, offset: int) -> bool:
        """Whether `find` would not wait for the disk; an active segment's index is always in memory."""
        index = self._offset_index
        if index is None:
            return self.end_offset < 0 or self.size <= _SMALL_BYTES
        return self._is_resident(index.lookup(offset)[1])

    def has_cut_at_hand(self, position: int, max_bytes: int) -> bool:
        """Whether `cut` would not wait for the disk."""
        index = self._offset_index
        if index is None:
            return self.end_offset < 0 or self.size <= _SMALL_BYTES
        return self._is_resident(max(index.floor_position(position + max_bytes)[1], position))

    def _is_resident(self, position: int) -> bool:
        """Whether a walk from `position` would not wait; true of what this process wrote to the active segment."""
        if self.end_offset < 0 and position >= self._found_bytes:
            return True
        return self.resident(position, min(WALK_BYTES, self.size - position))

    def prefetch(self, offset: int, max_bytes: int) -> bool:
        """Have what `find` and `cut` need read into memory; False if the offset lies behind. Blocking, any thread."""
        if self.end_offset < 0:
            # The owner is appending: whatever this thread made of the index would lack that.
            index = self._offset_index
            position = index.lookup(offset)[1] if index is not None else 0
            self.file.pread(WALK_BYTES, position)
            return True
        found = self.find(offset)
        if found is None:
            return False
        self.cut(found[0], self.size, max_bytes)
        return True

    def cut(self, position: int, end: int, max_bytes: int) -> tuple[int, int]:
        """Where a run of whole batches within `max_bytes` of `position` may end, and the offset behind it; HOT.

        Answers `position` itself and -1 if not even the first batch fits. A long run ends at the last batch the index
        knows, which is less than an interval short of the most and needs no walk.
        """
        last_offset, known = self.offset_index.floor_position(position + max_bytes)
        if known > position:
            base_offset, _, magic, delta = OUTLINE.unpack(self.file.pread(OUTLINE_BYTES, known))
            if magic == MAGIC and base_offset + delta == last_offset and known - position > max_bytes >> 1:
                return known, base_offset
        stop, next_offset = position, -1
        for at, _, last_offset, size in self.outlines(position, end):
            if at + size > position + max_bytes:
                break
            stop, next_offset = at + size, last_offset + 1
        return stop, next_offset

    def release(self) -> None:
        """Give up descriptor, mapping and indexes of a segment nobody reads just now; views in hand stay good."""
        if self.suffix:
            return
        self._unmap()
        self._file = None
        self._offset_index = None
        self._time_index = None
        self.aborted.release()

    # Changing

    def truncate(self, position: int) -> None:
        """Cut every batch from `position` on; blocking."""
        self.shorten(position)
        self._file_end = position
        self.rebuild_indexes()
        # The files' entries may point at what is gone; rolling writes them again from the first.
        for kind in (file_names.OFFSET_INDEX, file_names.TIME_INDEX):
            self.files.open(self.path(kind), create=True)
