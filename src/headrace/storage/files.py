"""The only door to the disk: a small port, and the real file system behind it.

Everything in storage reaches files through `Files` and `File`, so that a test can hand it a disk that fails, fills up
or loses its cache (`memory_files.MemoryFiles`). Both twins raise plain `OSError`; the log translates it once.

A `File` is closed when its last user lets go of it and never before: a descriptor that a thread still reads from must
not be closed under it, because the kernel would give its number to another file. For the same reason a mapping lives
as long as any view of it.
"""

import errno
import mmap
import os
import shutil
import sys
from typing import NamedTuple, Protocol, TypeAlias

from headrace.storage.residency import address_of, is_resident
from headrace.storage.room import set_aside

Bytes: TypeAlias = bytes | bytearray | memoryview

ZEROS_MAX = 256 * 1024
"""How many zeros are written at most behind what a file grows by."""

_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""What a disk that is well may answer: there is no room just now, on it or in the system."""


def passes(problem: OSError) -> bool:
    """Whether trying again may help; what it may not help for is a disk that has failed."""
    return problem.errno in _PASSING


class FileStat(NamedTuple):
    """What the log wants to know of a path."""

    size: int
    modified_ms: int
    is_dir: bool


class Space(NamedTuple):
    """A volume's bytes: all of it, and what we may still use."""

    total: int
    usable: int


class Mapping(Protocol):
    """The first `length` bytes of a file, mapped."""

    length: int
    view: memoryview

    def resident(self, position: int, size: int) -> bool:
        """Whether reading the range would not wait for the disk; True if that cannot be told."""

    def release(self) -> bool:
        """Unmap; False if somebody still looks at it (then it goes with the last view)."""


class File(Protocol):
    """One open file; positions are explicit, there is no cursor."""

    def pread(self, size: int, position: int) -> bytes:
        """At most `size` bytes from `position`; fewer only at the end of the file."""

    def send(self, descriptor: int, size: int, position: int) -> int:
        """Hand at most `size` bytes from `position` to a socket, answering how many it took; 0 at the file's end."""

    def pwrite(self, data: Bytes, position: int) -> int:
        """Write at `position`, answering how many bytes were taken."""

    def pwrite_ahead(self, data: Bytes, position: int, zeros: int) -> int:
        """Write at `position` and so many zeros behind it, answering how many bytes were taken of both.

        The zeros are a wish too: where they are of no use, none are written.
        """

    def reserve(self, position: int, size: int) -> None:
        """Have room on the disk set aside for what will be written there; a wish, which changes no length."""

    def size(self) -> int:
        """The file's length now."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size`; never while a mapping reaches beyond it."""

    def fdatasync(self) -> None:
        """Wait until the data, and the length needed to read it back, are on the disk."""

    def map(self, length: int) -> Mapping:
        """Map the first `length` bytes for reading; `length` must not pass the end of the file."""


class Lock(Protocol):
    """Held until released or the process ends."""

    def release(self) -> None:
        """Let another process have it."""


class Files(Protocol):
    """The file system as storage needs it."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; with `create` the file is new, an older one of that name is emptied."""

    def read(self, path: str) -> bytes:
        """A whole small file."""

    def stat(self, path: str) -> FileStat | None:
        """Facts about a path, or None where nothing is."""

    def listdir(self, path: str) -> list[str]:
        """Names in a directory, in no order."""

    def mkdir(self, path: str) -> None:
        """Make a directory and its missing parents; fine if it is there."""

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing a file at `target` in one step."""

    def unlink(self, path: str) -> None:
        """Remove a file; fine if it is gone."""

    def rmdir(self, path: str) -> None:
        """Remove an empty directory; fine if it is gone."""

    def fsync_dir(self, path: str) -> None:
        """Wait until the names in a directory are on the disk."""

    def space(self, path: str) -> Space:
        """Room on the volume of `path`."""

    def lock(self, path: str) -> Lock | None:
        """Take the lock file, or None if another process holds it."""


def write_all(file: File, data: Bytes, position: int) -> None:
    """Write every byte, going on after short writes."""
    taken = file.pwrite(data, position)
    if taken == len(data):
        return
    view = memoryview(data)
    while taken < len(view):
        more = file.pwrite(view[taken:], position + taken)
        if more <= 0:
            raise OSError(errno.EIO, "a write took no bytes")
        taken += more


class RealMapping:
    """An mmap, with its address for asking the kernel about residency."""

    __slots__ = ("_address", "_mmap", "length", "view")

    def __init__(self, fd: int, length: int) -> None:
        self._mmap = mmap.mmap(fd, length, access=mmap.ACCESS_READ)
        self.length = length
        self.view = memoryview(self._mmap)
        self._address = address_of(self.view)

    def resident(self, position: int, size: int) -> bool:
        """Ask the kernel which pages of the range it holds."""
        return is_resident(self._address, self.length, position, size)

    def release(self) -> bool:
        """Unmap now if no slice is left in anybody's hands."""
        self.view.release()
        try:
            self._mmap.close()
        except BufferError:
            return False
        return True


class RealFile:
    """An open descriptor that closes with its last reference."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __del__(self) -> None:
        os.close(self._fd)

    def pread(self, size: int, position: int) -> bytes:
        """Read, going on after a short read until the end of the file."""
        data = _pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        done = len(data)
        while done < size and (more := _pread(self._fd, size - done, position + done)):
            parts.append(more)
            done += len(more)
        return b"".join(parts)

    def send(self, descriptor: int, size: int, position: int) -> int:
        """Let the kernel hand over its pages; they are not copied, not even looked at."""
        return _sendfile(descriptor, self._fd, position, size)

    def pwrite(self, data: Bytes, position: int) -> int:
        """One write call; the caller looks at what was taken."""
        return _pwrite(self._fd, data, position)

    def pwrite_ahead(self, data: Bytes, position: int, zeros: int) -> int:
        """One call for both, so that they come to lie in one large page."""
        return _pwrite_ahead(self._fd, data, position, zeros)

    def reserve(self, position: int, size: int) -> None:
        """Where the system can; what it cannot do now, writing will do."""
        set_aside(self._fd, position, size)

    def size(self) -> int:
        """The file's length by fstat."""
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        """Cut the file."""
        os.ftruncate(self._fd, size)

    def fdatasync(self) -> None:
        """Flush data to the device."""
        _datasync(self._fd)

    def map(self, length: int) -> RealMapping:
        """Map the beginning of the file."""
        return RealMapping(self._fd, length)


_zeros = memoryview(bytes(ZEROS_MAX))
if sys.platform.startswith("linux"):

    def _pwrite_ahead(fd: int, data: Bytes, position: int, zeros: int) -> int:
        return os.pwritev(fd, (data, _zeros[:zeros]), position)
else:

    def _pwrite_ahead(fd: int, data: Bytes, position: int, _zeros: int) -> int:
        return _pwrite(fd, data, position)


class RealLock:
    """A locked file; the kernel drops the lock with the process."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Close the file, and with it the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_descriptor(path: str, *, create: bool) -> int:
    """A descriptor for reading and writing, as `Files.open` promises."""
    return os.open(path, _OPEN | _CREATE if create else _OPEN, 0o644)


class RealFiles:
    """The operating system's files."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """Open for reading and writing."""
        return RealFile(open_descriptor(path, create=create))

    def read(self, path: str) -> bytes:
        """Read a small file whole, without the layers of `open`."""
        fd = os.open(path, os.O_RDONLY | _FLAGS)
        try:
            parts = []
            while part := os.read(fd, _READ_BYTES):
                parts.append(part)
                if len(part) < _READ_BYTES:
                    break
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(fd)

    def stat(self, path: str) -> FileStat | None:
        """Facts about a path."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        return FileStat(found.st_size, found.st_mtime_ns // 1_000_000, (found.st_mode & 0o170000) == 0o040000)

    def listdir(self, path: str) -> list[str]:
        """Names in a directory."""
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        """Make a directory with its parents."""
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Rename over whatever is there."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return

    def fsync_dir(self, path: str) -> None:
        """Flush a directory; Windows has no such call and needs none."""
        if sys.platform == "win32":
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def space(self, path: str) -> Space:
        """Room on the volume."""
        usage = shutil.disk_usage(path)
        return Space(usage.total, usage.free)

    def lock(self, path: str) -> RealLock | None:
        """Take the lock file without waiting."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
        try:
            _lock(fd)
        except OSError as problem:
            os.close(fd)
            if problem.errno in {errno.EAGAIN, errno.EACCES, errno.EDEADLK}:
                return None
            raise
        return RealLock(fd)


_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN = os.O_RDWR | _FLAGS
_CREATE = os.O_CREAT | os.O_TRUNC
_READ_BYTES = 64 * 1024

if sys.platform == "win32":
    import msvcrt
    import threading

    _cursor = threading.Lock()

    def _pread(fd: int, size: int, position: int) -> bytes:
        with _cursor:
            os.lseek(fd, position, os.SEEK_SET)
            return os.read(fd, size)

    def _pwrite(fd: int, data: Bytes, position: int) -> int:
        with _cursor:
            os.lseek(fd, position, os.SEEK_SET)
            return os.write(fd, data)

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _sendfile(descriptor: int, fd: int, position: int, size: int) -> int:
        raise OSError(errno.ENOSYS, "there is no sendfile here")

    _datasync = os.fsync
else:
    import fcntl

    _pread = os.pread
    _pwrite = os.pwrite
    _sendfile = os.sendfile

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    if sys.platform == "darwin":

        def _datasync(fd: int) -> None:
            # fsync on macOS stops at the drive's cache; only this call reaches the platter.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        _datasync = os.fdatasync
