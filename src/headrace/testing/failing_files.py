"""Real files that fail when a test asks them to: the real disk, with the faults of a bad one."""

import errno
import os

from headrace.storage.files import Bytes, RealFile, RealFiles, open_descriptor


class FailingFiles(RealFiles):
    """The real file system behind two switches."""

    __slots__ = ("_fsyncs_to_fail", "full")

    def __init__(self) -> None:
        self.full = False
        """While set, writes find no space."""
        self._fsyncs_to_fail = 0

    def fail_fsync(self, times: int) -> None:
        """Fail the next `times` flushes."""
        self._fsyncs_to_fail += times

    def take_fsync_fault(self) -> bool:
        """Whether the flush that asks is to fail."""
        if self._fsyncs_to_fail:
            self._fsyncs_to_fail -= 1
            return True
        return False

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """A real file that looks at the switches first."""
        return _FailingFile(self, open_descriptor(path, create=create))


class _FailingFile(RealFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: FailingFiles, fd: int) -> None:
        super().__init__(fd)
        self._disk = disk

    def pwrite(self, data: Bytes, position: int) -> int:
        self._look_for_room()
        return super().pwrite(data, position)

    def pwrite_ahead(self, data: Bytes, position: int, zeros: int) -> int:
        self._look_for_room()
        return super().pwrite_ahead(data, position, zeros)

    def _look_for_room(self) -> None:
        if self._disk.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fdatasync(self) -> None:
        if self._disk.take_fsync_fault():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().fdatasync()
