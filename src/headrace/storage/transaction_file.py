"""The aborted transactions of a segment, in memory and in their file.

Memory is ahead of the file: an abort that is in the log must not be lost to a full disk. What a flush or a roll writes
is a copy, and recovery makes it anew for every segment that may not have been flushed.
"""

from threading import Lock
from weakref import proxy

from headrace.storage.batch_file import BatchFile
from headrace.storage.checkpoint_file import replace_file
from headrace.storage.corruption import CorruptLog
from headrace.storage.file_names import TRANSACTION_INDEX
from headrace.storage.files import write_all
from headrace.storage.transaction_index import ENTRY_BYTES, AbortedTransaction, TransactionIndex


class TransactionFile:
    """A segment's `.txnindex`; there is none as long as nothing was aborted."""

    __slots__ = ("_changing", "_index", "_segment", "_written", "exists")

    def __init__(self, segment: BatchFile) -> None:
        # Not the segment itself: one that nobody knows any more closes its file at once, without the collector.
        self._segment: BatchFile = proxy(segment)
        self.exists = False
        """Whether something was aborted here, whether the file has it yet or not."""
        self._index: TransactionIndex | None = None
        self._written = 0
        self._changing = Lock()
        """Held while the file changes: a flush may be writing entries that a truncation is about to take back."""

    @property
    def index(self) -> TransactionIndex:
        """The aborted transactions, read on first use."""
        index = self._index
        if index is None:
            index = self._index = self.read()
        return index

    @property
    def is_at_hand(self) -> bool:
        """Whether `index` needs no disk."""
        return self._index is not None or not self.exists

    def read(self) -> TransactionIndex:
        """Read the file; CorruptLog if it cannot be right, as only a walk from further back makes it anew."""
        if not self.exists:
            return TransactionIndex()
        segment = self._segment
        data = segment.read_file(TRANSACTION_INDEX)
        index = TransactionIndex.decode(data, base_offset=segment.base_offset, end_offset=segment.end_offset)
        if index is None:
            raise CorruptLog(f"{segment.path(TRANSACTION_INDEX)} cannot be right")
        self._written = len(index)
        return index

    def is_sound(self) -> bool:
        """Whether what is on the disk can be right."""
        try:
            self.read()
        except CorruptLog:
            return False
        return True

    def note(self, transaction: AbortedTransaction) -> None:
        """Add a transaction whose abort marker was just appended."""
        self.index.append(transaction)
        self.exists = True

    def write(self) -> bool:
        """Take entries that only memory knows to the file; whether there were any. Any thread."""
        index = self._index
        if index is None or len(index) == self._written:
            return False
        with self._changing:
            written = self._written
            data = index.encode(written)
            file = self._segment.files.open(self._segment.path(TRANSACTION_INDEX), create=written == 0)
            write_all(file, data, written * ENTRY_BYTES)
            self._written = written + len(data) // ENTRY_BYTES
        return True

    def flush(self) -> None:
        """Wait until the file, as far as it is written, is on the disk; its absence would say something, too."""
        if self.exists:
            self._segment.files.open(self._segment.path(TRANSACTION_INDEX)).fdatasync()
            self._segment.files.fsync_dir(self._segment.directory)

    def reset(self) -> None:
        """Forget all, to note it again; the file stays until `replace`."""
        self._index = TransactionIndex()
        self._written = 0

    def replace(self) -> None:
        """Write the file anew, all at once and flushed; without aborted transactions there is none."""
        path = self._segment.path(TRANSACTION_INDEX)
        data = self.index.encode()
        if data:
            replace_file(self._segment.files, path, data, sync=True)
        elif self.exists:
            self._segment.files.unlink(path)
        self.exists = bool(data)
        self._written = len(self.index)

    def cut(self, offset: int) -> None:
        """Forget transactions that were aborted at `offset` or behind it; blocking."""
        if self.exists:
            with self._changing:
                self.index.truncate(offset)
                self.replace()

    def release(self) -> None:
        """Give up the memory if the file has it all."""
        if self._index is not None and len(self._index) == self._written:
            self._index = None
