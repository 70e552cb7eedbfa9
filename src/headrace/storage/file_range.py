"""A range of a file that is held open and mapped, for a socket that takes bytes from files without a copy."""

import errno
from typing import TYPE_CHECKING

from headrace.storage.files import File
from headrace.storage.residency import warm

if TYPE_CHECKING:
    from headrace.storage.batch_file import BatchFile


class FileRange:
    """Bytes in a file, and the same bytes in memory for who cannot have them from there.

    As long as somebody has `view`, a log that is truncated gets another file, so the two stay the same.
    """

    __slots__ = ("_file", "_position", "_segment", "view")

    def __init__(self, segment: "BatchFile", file: File, position: int, view: memoryview) -> None:
        self._segment = segment
        self._file = file
        self._position = position
        self.view = view

    def __len__(self) -> int:
        return len(self.view)

    def send(self, descriptor: int, begin: int) -> int:
        """Hand bytes from `begin` on to a socket that does not block, answering how many it took; HOT."""
        try:
            taken = self._file.send(descriptor, len(self.view) - begin, self._position + begin)
        except (BlockingIOError, ConnectionError):
            raise
        except OSError:
            self._segment.has_failed = True
            raise
        if taken == 0:
            raise _shorter()
        return taken

    def bring(self) -> memoryview:
        """The view, or a copy of it, so that nobody waits for the disk any more; blocking, for a thread."""
        if warm(self.view):
            return self.view
        data = self._file.pread(len(self.view), self._position)
        if len(data) != len(self.view):
            raise _shorter()
        return memoryview(data)


def _shorter() -> OSError:
    return OSError(errno.EIO, "the file became shorter")
