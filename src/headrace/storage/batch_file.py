"""A file of batches under its name: writing at its end, walking, mapping, renaming.

Any thread may read: positions below `size` never change, the file closes with its last reader, and a mapping dies with
its last view.
"""

import struct
from collections.abc import Iterator
from threading import Lock

from crc32c import crc32c

from headrace.records.batch import HEADER_BYTES, LENGTH_OVERHEAD, BatchHeader, header_fault, read_header
from headrace.storage import file_names
from headrace.storage.corruption import CorruptLog
from headrace.storage.file_range import FileRange
from headrace.storage.files import Bytes, File, Files, Mapping, write_all

OUTLINE = struct.Struct(">qi4xb6xi")
"""Of a batch header only base offset, length, magic and last offset delta: all that walking needs."""
OUTLINE_BYTES = OUTLINE.size
MAGIC = 2
WALK_BYTES = 8 * 1024
"""Read at once while walking from header to header: an index interval and a bit."""

_CRC_FROM = 21
_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD
_SCAN_BYTES = 1024 * 1024
"""Read at once while looking at whole batches."""
_READ_AHEAD = 4 * 1024 * 1024
"""How far beyond a read the kernel is taken to have gone by itself: some disks are set to more, most to less, and who
reads on moves the mark along."""
_MAP_STEP = 1024 * 1024
"""How much unmapped tail is read by copying before the file is mapped again."""
_MAP_MIN = 64 * 1024
"""A range from a file smaller than this is copied; a mapping would cost more."""


class BatchFile:
    """The `.log` file of a segment, and the names of the files beside it."""

    __slots__ = (
        "__weakref__",
        "_file",
        "_fresh",
        "_held_mappings",
        "_mapping",
        "_naming",
        "base_offset",
        "directory",
        "end_offset",
        "files",
        "has_failed",
        "removed",
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
        self.removed = False
        self.has_failed = False
        """Whether the disk once failed while it was being sent."""
        self._file: File | None = None
        self._naming = Lock()
        """Held while the files change their names, and while one is opened by its name: a cleaner renames segments that
        a reader has just found, and puts others under the same names.
        """
        self._mapping: Mapping | None = None
        self._fresh = (0, 0)
        """The range that came from the disk last, with what the kernel may have read ahead of it."""
        self._held_mappings: list[Mapping] = []
        """Former mappings that somebody may still look at; the file must not shrink under them."""

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
            with self._naming:
                file = self._file
                if file is None:
                    file = self._file = self.files.open(self.path())
        return file

    def read_file(self, kind: str) -> bytes:
        """The whole of one of the files beside the log; FileNotFoundError if there is none."""
        with self._naming:
            return self.files.read(self.path(kind))

    # Writing

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

    # Reading

    def header_at(self, position: int) -> BatchHeader | None:
        """The batch header at a position, or None if no batch fits there."""
        if position < 0 or self.size - position < HEADER_BYTES:
            return None
        header = read_header(self.file.pread(HEADER_BYTES, position))
        if header.magic != MAGIC or not _LENGTH_MIN <= header.batch_length <= self.size - position - LENGTH_OVERHEAD:
            return None
        return header

    def outlines(self, position: int = 0, end: int = -1) -> Iterator[tuple[int, int, int, int]]:
        """Position, base offset, last offset and size of each batch from one position on."""
        file = self.file
        end = self.size if end < 0 else end
        window, start = b"", position
        while position < end:
            at = position - start
            if at + OUTLINE_BYTES > len(window):
                window, start, at = file.pread(min(WALK_BYTES, end - position), position), position, 0
            if len(window) - at < OUTLINE_BYTES:
                raise CorruptLog(f"{self.path()}: no batch at {position}, {end - position} bytes before the end")
            base_offset, length, magic, delta = OUTLINE.unpack_from(window, at)
            size = length + LENGTH_OVERHEAD
            if magic != MAGIC or length < _LENGTH_MIN or delta < 0 or size > end - position:
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
                window, start, at = file.pread(min(WALK_BYTES, end - position), position), position, 0
            if len(window) - at < HEADER_BYTES:
                raise CorruptLog(f"{self.path()}: no batch at {position}, {end - position} bytes before the end")
            header = read_header(window, at)
            if header.magic != MAGIC or header.batch_length < _LENGTH_MIN or header.size > end - position:
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
            if header.magic != MAGIC or header.batch_length < _LENGTH_MIN or size > end - position:
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

    def is_blank(self, position: int) -> bool:
        """Whether there is nothing but zeros from a position to the end of the file."""
        while position < self.size:
            data = self.file.pread(min(_SCAN_BYTES, self.size - position), position)
            if not data or data.count(0) < len(data):
                return False
            position += len(data)
        return True

    def check_from(self, position: int = 0) -> Iterator[tuple[int, BatchHeader, memoryview, str | None]]:
        """Like `batches`, with each CRC checked; the last field says what is wrong, None if nothing is."""
        for at, header, view in self.batches(position):
            fault = header_fault(header)
            if fault is None and crc32c(view[_CRC_FROM:]) != header.crc:
                fault = f"the CRC of the batch at offset {header.base_offset} does not match its bytes"
            yield at, header, view, fault

    def view(self, position: int, size: int) -> memoryview:
        """A range of the file without copying where it is mapped; HOT."""
        end = position + size
        mapping = self._mapping
        if mapping is None or mapping.length < end:
            mapping = self._map(end)
        return memoryview(self.read(position, size)) if mapping is None else mapping.view[position:end]

    def piece(self, position: int, size: int) -> FileRange | memoryview:
        """The same for a socket, which may have what is mapped from the file itself; HOT."""
        view = self.view(position, size)
        mapping = self._mapping
        if self.has_failed or mapping is None or mapping.length < position + size:
            return view
        return FileRange(self, self.file, position, view)

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

    def is_warm(self, position: int, size: int) -> bool:
        """Whether a range is resident, and not because the kernel has just read it ahead of somebody who had to wait:
        pages that nobody has looked at yet are as well sent from the file.
        """
        if self._fresh[0] <= position < self._fresh[1] or not self.resident(position, size):
            self._fresh = (position, position + size + _READ_AHEAD)
            return False
        return True

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

    # Changing

    def shorten(self, position: int) -> None:
        """Cut every byte from `position` on, on the disk too; blocking."""
        if self._unmap():
            self.file.truncate(position)
            self.file.fdatasync()
        else:
            self._replace_file(position)
        self.size = position

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
        with self._naming:
            for kind in file_names.SEGMENT_KINDS:
                source = self.path(kind)
                target = f"{self.directory}/{self.base_offset:020d}{kind}{suffix}"
                try:
                    self.files.rename(source, target)
                except FileNotFoundError:
                    # An index may never have been written; a transaction index exists only where one was aborted.
                    if kind == file_names.LOG:
                        raise
            self.suffix = suffix

    def remove(self) -> None:
        """Unlink all the segment's files; a reader that has one open keeps reading."""
        self.removed = True
        for kind in file_names.SEGMENT_KINDS:
            self.files.unlink(self.path(kind))
