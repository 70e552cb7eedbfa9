"""One file of batches, with its indexes: the log's unit of rolling, deleting, flushing and mapping.

A segment knows bytes and positions; which offsets may be read, and when to roll, the log decides. Only the log's owner
appends. Any thread may read: positions below `size` never change, the file closes with its last reader, and a mapping
dies with its last view.
"""

import struct
from collections.abc import Iterator

from crc32c import crc32c

from headrace.model.log_config import LogConfig
from headrace.records.batch import HEADER_BYTES, LENGTH_OVERHEAD, BatchHeader, header_fault, read_header
from headrace.storage import file_names
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import Bytes, File, Files, Mapping, write_all
from headrace.storage.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from headrace.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from headrace.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from headrace.storage.time_index import TimeIndex

NO_TIMESTAMP = -1

_OUTLINE = struct.Struct(">qi4xb6xi")
"""Of a batch header only base offset, length, magic and last offset delta: all that walking needs."""
_OFFSET = struct.Struct(">q")
_OUTLINE_BYTES = _OUTLINE.size
_CRC_FROM = 21
_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD
_MAGIC = 2

_WALK_BYTES = 8 * 1024
"""Read at once while walking from header to header: an index interval and a bit."""
_SCAN_BYTES = 1024 * 1024
"""Read at once while looking at whole batches."""
_MAP_STEP = 1024 * 1024
"""How much unmapped tail is read by copying before the file is mapped again."""
_MAP_MIN = 64 * 1024
"""A range from a file smaller than this is copied; a mapping would cost more."""
_PENDING_ENTRIES_MAX = 512
"""Index entries that wait in memory before a flush takes them to the file."""


class Segment:
    """A `.log` file from one base offset on."""

    __slots__ = (
        "_bytes_since_entry",
        "_file",
        "_first_timestamp",
        "_held_mappings",
        "_mapping",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_offset_written",
        "_removed",
        "_time_index",
        "_time_written",
        "base_offset",
        "created_ms",
        "directory",
        "end_offset",
        "files",
        "index_bytes_max",
        "index_full",
        "index_interval_bytes",
        "indexes_flushed",
        "size",
        "suffix",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, *, size: int, suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.suffix = suffix
        self.end_offset = -1
        """The next segment's base offset; -1 while this one is the last."""
        self.created_ms = 0
        self.indexes_flushed = True
        """Whether the index files, as far as they are written, are known to be on the disk."""
        self.index_interval_bytes = 4096
        self.index_bytes_max = 10 * 1024 * 1024
        self.index_full = False
        self._file: File | None = None
        self._mapping: Mapping | None = None
        self._removed = False
        self._held_mappings: list[Mapping] = []
        """Former mappings that somebody may still look at; the file must not shrink under them."""
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
        """Take over what the topic's settings say about indexes."""
        self.index_interval_bytes = config.index_interval_bytes
        self.index_bytes_max = config.segment_index_bytes

    def path(self, kind: str = file_names.LOG) -> str:
        """Where one of the segment's files is now."""
        return f"{self.directory}/{self.base_offset:020d}{kind}{self.suffix}"

    def __repr__(self) -> str:
        return f"Segment({self.path()!r}, size={self.size})"

    @property
    def file(self) -> File:
        """The log file, opened on first use."""
        file = self._file
        if file is None:
            file = self._file = self.files.open(self.path())
        return file

    # Writing

    def append(self, data: Bytes, last_offset: int, max_timestamp: int) -> None:
        """Write whole batches at the end; HOT. OSError leaves the segment as it was; if that fails too: CorruptLog."""
        position = self.size
        size = len(data)
        file = self._file
        if file is None:
            file = self.file
        if self._time_index is None:
            # Now, because once the batch is written nothing may fail any more.
            self.load_indexes()
        try:
            taken = file.pwrite(data, position)
            if taken != size:
                self._write_rest(data, position, taken)
        except OSError:
            self._undo(position)
            raise
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

    def _write_rest(self, data: Bytes, position: int, taken: int) -> None:
        """Go on after a short write; a full disk answers the next one with an error."""
        write_all(self.file, memoryview(data)[taken:], position + taken)

    def _undo(self, position: int) -> None:
        """Cut what a failed write left behind; readers never saw it, no mapping reaches it.

        Flushed at once, and rarely: later nobody would know that a power cut might bring it back.
        """
        try:
            if self.file.size() > position:
                self.file.truncate(position)
                self.file.fdatasync()
        except OSError as problem:
            raise CorruptLog(f"{self.path()}: a failed write at {position} cannot be undone: {problem}") from problem

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
        index, times = self._offset_index, self._time_index
        if index is None or times is None:
            return
        times.append(self._max_timestamp, self._max_timestamp_offset)
        if self._offset_written != len(index) or self._time_written != len(times):
            self._write_indexes(index, times).truncate(len(times) * TIME_ENTRY_BYTES)

    def write_pending_entries(self) -> None:
        """Take entries that only memory knows to the files, once it is worth opening them; any thread."""
        index, times = self._offset_index, self._time_index
        if index is not None and times is not None and len(index) - self._offset_written >= _PENDING_ENTRIES_MAX:
            self._write_indexes(index, times)

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
                self.indexes_flushed = True
        except FileNotFoundError:
            # A truncation or retention may have taken the segment while its flush was waiting for a thread.
            if not self._removed:
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
            return self.files.read(self.path(kind))
        except FileNotFoundError:
            return None

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Make both indexes anew from the batches' headers; blocking. CorruptLog if those cannot be indexed."""
        indexes = self.reset_indexes()
        next_offset = self.base_offset
        try:
            for position, header in self.headers():
                if header.base_offset < next_offset or not self.can_hold(header.last_offset):
                    raise CorruptLog(f"{self.path()}: offset {header.base_offset} cannot be at {position}")
                self.note(position, header)
                next_offset = header.last_offset + 1
        except CorruptLog:
            # Half an index would hide the harm from the next one who asks.
            self._offset_index = self._time_index = None
            raise
        return indexes

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

    def header_at(self, position: int) -> BatchHeader | None:
        """The batch header at a position, or None if no batch fits there."""
        if position < 0 or self.size - position < HEADER_BYTES:
            return None
        header = read_header(self.file.pread(HEADER_BYTES, position))
        if header.magic != _MAGIC or not _LENGTH_MIN <= header.batch_length <= self.size - position - LENGTH_OVERHEAD:
            return None
        return header

    def outlines(self, position: int = 0, end: int = -1) -> Iterator[tuple[int, int, int, int]]:
        """Position, base offset, last offset and size of each batch from one position on."""
        file = self.file
        end = self.size if end < 0 else end
        window, start = b"", position
        while position < end:
            at = position - start
            if at + _OUTLINE_BYTES > len(window):
                window, start, at = file.pread(min(_WALK_BYTES, end - position), position), position, 0
            if len(window) - at < _OUTLINE_BYTES:
                raise CorruptLog(f"{self.path()}: no batch at {position}, {end - position} bytes before the end")
            base_offset, length, magic, delta = _OUTLINE.unpack_from(window, at)
            size = length + LENGTH_OVERHEAD
            if magic != _MAGIC or length < _LENGTH_MIN or delta < 0 or size > end - position:
                raise CorruptLog(f"{self.path()}: no batch at {position}")
            yield position, base_offset, base_offset + delta, size
            position += size

    def headers(self, position: int = 0, end: int = -1) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from one position on."""
        file = self.file
        end = self.size if end < 0 else end
        window, start = b"", position
        while position < end:
            at = position - start
            if at + HEADER_BYTES > len(window):
                window, start, at = file.pread(min(_WALK_BYTES, end - position), position), position, 0
            if len(window) - at < HEADER_BYTES:
                raise CorruptLog(f"{self.path()}: no batch at {position}, {end - position} bytes before the end")
            header = read_header(window, at)
            if header.magic != _MAGIC or header.batch_length < _LENGTH_MIN or header.size > end - position:
                raise CorruptLog(f"{self.path()}: no batch at {position}")
            yield position, header
            position += header.size

    def batches(self, position: int = 0, end: int = -1) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Position, header and bytes of each batch from one position on, unchecked beyond its length."""
        file = self.file
        end = self.size if end < 0 else end
        window, start = memoryview(b""), position
        while position < end:
            at = position - start
            if at + HEADER_BYTES > len(window):
                window, start, at = self._scan_window(file, position, end, HEADER_BYTES)
            header = read_header(window, at)
            size = header.size
            if header.magic != _MAGIC or header.batch_length < _LENGTH_MIN or size > end - position:
                raise CorruptLog(f"{self.path()}: no batch at {position}")
            if at + size > len(window):
                window, start, at = self._scan_window(file, position, end, size)
            yield position, header, window[at : at + size]
            position += size

    def _scan_window(self, file: File, position: int, end: int, need: int) -> tuple[memoryview, int, int]:
        window = memoryview(file.pread(min(max(_SCAN_BYTES, need), end - position), position))
        if len(window) < need:
            raise CorruptLog(f"{self.path()}: no batch at {position}, {end - position} bytes before the end")
        return window, position, 0

    def check_from(self, position: int = 0) -> Iterator[tuple[int, BatchHeader, memoryview, str | None]]:
        """Like `batches`, with each CRC checked; the last field says what is wrong, None if nothing is."""
        for at, header, view in self.batches(position):
            fault = header_fault(header)
            if fault is None and crc32c(view[_CRC_FROM:]) != header.crc:
                fault = f"the CRC of the batch at offset {header.base_offset} does not match its bytes"
            yield at, header, view, fault

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

    def cut(self, position: int, end: int, max_bytes: int) -> tuple[int, int]:
        """Where a run of whole batches within `max_bytes` of `position` may end, and the offset behind it; HOT.

        Answers `position` itself and -1 if not even the first batch fits. A long run ends at the last batch the index
        knows, which is less than an interval short of the most and needs no walk.
        """
        last_offset, known = self.offset_index.floor_position(position + max_bytes)
        if known > position:
            base_offset, _, magic, delta = _OUTLINE.unpack(self.file.pread(_OUTLINE_BYTES, known))
            if magic == _MAGIC and base_offset + delta == last_offset and known - position > max_bytes >> 1:
                return known, base_offset
        stop, next_offset = position, -1
        for at, _, last_offset, size in self.outlines(position, end):
            if at + size > position + max_bytes:
                break
            stop, next_offset = at + size, last_offset + 1
        return stop, next_offset

    def view(self, position: int, size: int) -> memoryview:
        """A range of the file without copying where it is mapped; HOT."""
        end = position + size
        mapping = self._mapping
        if mapping is None or mapping.length < end:
            mapping = self._map(end)
        return memoryview(self.read(position, size)) if mapping is None else mapping.view[position:end]

    def read(self, position: int, size: int) -> bytes:
        """A range of the file, copied; CorruptLog if it is not there any more."""
        data = self.file.pread(size, position)
        if len(data) != size:
            raise CorruptLog(f"{self.path()} ends before {position + size}")
        return data

    def resident(self, position: int, size: int) -> bool:
        """Whether a range can be had without waiting for the disk; the unmapped tail was written a moment ago."""
        end = position + size
        mapping = self._mapping
        if mapping is None or mapping.length < end:
            mapping = self._map(end)
        return mapping is None or mapping.resident(position, size)

    def _map(self, end: int) -> Mapping | None:
        """Map the file as far as it goes now, if enough of it is unmapped to be worth it."""
        total = self.size
        mapping = self._mapping
        unmapped = total - (mapping.length if mapping else 0)
        if total < _MAP_MIN or end > total or (unmapped < _MAP_STEP and self.end_offset < 0):
            return None
        self._unmap()
        self._mapping = mapping = self.file.map(total)
        return mapping

    def _unmap(self) -> bool:
        """Let go of the mapping; False while somebody still looks at it, or at one before it."""
        if self._mapping is not None:
            self._held_mappings.append(self._mapping)
            self._mapping = None
        self._held_mappings = [mapping for mapping in self._held_mappings if not mapping.release()]
        return not self._held_mappings

    def close_file(self) -> None:
        """Give up the descriptor until the next use: an idle partition should cost none."""
        self._file = None

    def release(self) -> None:
        """Give up descriptor, mapping and indexes of a segment nobody reads just now; views in hand stay good."""
        if self.suffix:
            return
        self._unmap()
        self._file = None
        self._offset_index = None
        self._time_index = None

    # Changing

    def truncate(self, position: int) -> None:
        """Cut every batch from `position` on; blocking."""
        if self._unmap():
            self.file.truncate(position)
            self.file.fdatasync()
        else:
            self._replace_file(position)
        self.size = position
        self.rebuild_indexes()
        # The files' entries may point at what is gone; rolling writes them again from the first.
        for kind in (file_names.OFFSET_INDEX, file_names.TIME_INDEX):
            self.files.open(self.path(kind), create=True)

    def _replace_file(self, length: int) -> None:
        """Put a shorter copy in the file's place: somebody still looks at the old one's mapping (SIGBUS otherwise)."""
        temporary = self.path() + file_names.TEMPORARY
        copy = self.files.open(temporary, create=True)
        position = 0
        while position < length:
            data = self.file.pread(min(_SCAN_BYTES, length - position), position)
            write_all(copy, data, position)
            position += len(data)
        copy.fdatasync()
        self.files.rename(temporary, self.path())
        self._file = copy

    def rename(self, suffix: str) -> None:
        """Give all the segment's files another suffix."""
        for kind in file_names.SEGMENT_KINDS:
            source = self.path(kind)
            target = f"{self.directory}/{self.base_offset:020d}{kind}{suffix}"
            try:
                self.files.rename(source, target)
            except FileNotFoundError:
                # An index may never have been written, and a transaction index exists only where something was aborted.
                if kind == file_names.LOG:
                    raise
        self.suffix = suffix

    def remove(self) -> None:
        """Unlink all the segment's files; a reader that has one open keeps reading."""
        self._removed = True
        for kind in file_names.SEGMENT_KINDS:
            self.files.unlink(self.path(kind))
