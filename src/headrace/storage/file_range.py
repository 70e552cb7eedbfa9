"""A range of a file that is held open and mapped, for a socket that takes bytes from files without a copy."""

import errno
from typing import TYPE_CHECKING

from headrace.storage.files import File

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
            raise OSError(errno.EIO, "the file became shorter")
        return taken
