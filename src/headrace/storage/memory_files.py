"""A disk in memory that behaves as badly as a real one, on command.

It keeps two truths: what a running process sees, and what the platter has. `fdatasync` and `fsync_dir` copy the first
to the second, `power_cut` throws the first away. Names are journaled in order, as ext4 does it: after a power cut a
prefix of the un-synced renames, creations and removals may have survived, and of each file's un-synced bytes any
prefix, or garbage in their place. A handle from before the cut answers EIO for ever.

A shrinking file under a live mapping would be SIGBUS on a real machine; here it is an AssertionError.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable
from random import Random
from weakref import ref

from headrace.storage.files import Bytes, FileStat, Space

_DISK_BYTES = 1 << 40


class _Pages(bytearray):
    """A mapping's bytes; a class of its own so that it can be weakly referenced while views of it live."""

    __slots__ = ("__weakref__",)


class _Node:
    """One file: its bytes as seen, its bytes as on the platter, and where the two begin to differ."""

    __slots__ = ("data", "dirty_from", "durable", "mapped", "modified_ms", "uncut", "undone")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.dirty_from: int | None = None
        self.mapped: list[ref[_Pages]] = []
        self.modified_ms = 0
        self.uncut: int | None = None
        """How far the platter's bytes still stand where they stood; None if nothing was cut off since the last sync."""
        self.undone: list[tuple[int, bytearray]] = []
        """Tails that were cut off again before they were synced; the disk may have taken them all the same."""

    def touch(self, position: int) -> None:
        self.dirty_from = position if self.dirty_from is None else min(self.dirty_from, position)

    def sync(self) -> None:
        if self.dirty_from is not None:
            self.durable[self.dirty_from :] = self.data[self.dirty_from :]
            self.dirty_from = self.uncut = None
            self.undone.clear()

    def survivor(self, chance: Random | None) -> bytearray:
        """What is left of the file after a power cut."""
        if self.dirty_from is None or chance is None or chance.random() < 0.3:
            return bytearray(self.durable)
        start, unsynced = chance.choice([(self.dirty_from, self.data[self.dirty_from :]), *self.undone])
        kept = chance.randint(0, len(unsynced))
        torn = chance.randbytes(chance.randint(0, len(unsynced) - kept)) if chance.random() < 0.3 else b""
        if torn and chance.random() < 0.5:
            torn = bytes(len(torn))
        written = self.durable[:start] + unsynced[:kept] + torn
        # What was written over, and not kept, is what it was before; pages of it may have been kept all the same.
        before = self.durable[len(written) : self.uncut]
        if before and chance.random() < 0.3:
            at = chance.randint(0, len(before))
            before[at:] = self.data[len(written) + at : len(written) + len(before)]
        return written + before


class _Directory:
    """One directory: names as seen, and names as on the platter."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, _Node | _Directory] = {}
        self.durable: dict[str, _Node | _Directory] = {}


class _Change:
    """One journaled step: names set or removed together."""

    __slots__ = ("steps",)

    def __init__(self, *steps: "tuple[_Directory, str, _Node | _Directory | None]") -> None:
        self.steps = steps

    def apply(self) -> None:
        for directory, name, node in self.steps:
            if node is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = node


class MemoryMapping:
    """A copy of the file's beginning, which is all a reader of an append-only file can tell from a real mapping."""

    __slots__ = ("_pages", "length", "view")

    def __init__(self, node: _Node, length: int) -> None:
        if length > len(node.data):
            raise ValueError("mmap length is greater than file size")
        self._pages = _Pages(node.data[:length])
        node.mapped.append(ref(self._pages))
        self.length = length
        self.view = memoryview(self._pages)

    def resident(self, position: int, size: int) -> bool:
        """Memory is always resident."""
        return position + size <= self.length

    def release(self) -> bool:
        """Let go of the pages; False while a slice of them lives."""
        self.view.release()
        try:
            self._pages.clear()
        except BufferError:
            return False
        return True


class MemoryFile:
    """An open file of a `MemoryFiles`."""

    __slots__ = ("_files", "_life", "_node", "_path")

    def __init__(self, files: "MemoryFiles", path: str, node: _Node) -> None:
        self._files = files
        self._life = files.lives
        self._path = path
        self._node = node

    def _enter(self, operation: str) -> None:
        if self._life != self._files.lives:
            raise OSError(errno.EIO, "the machine lost its power since", self._path)
        self._files.enter(operation, self._path)

    def pread(self, size: int, position: int) -> bytes:
        """Read a range."""
        self._enter("read")
        return bytes(self._node.data[position : position + size])

    def send(self, descriptor: int, size: int, position: int) -> int:
        """Write a range to a socket."""
        self._enter("read")
        return os.write(descriptor, self._node.data[position : position + size])

    def pwrite(self, data: Bytes, position: int) -> int:
        """Write a range, as far as the disk has room."""
        self._enter("write")
        node = self._node
        growth = max(0, position + len(data) - len(node.data))
        room = self._files.take(growth)
        taken = len(data) - (growth - room)
        if taken == 0 and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        if self._files.tear:
            taken = min(taken, self._files.tear.pop(0))
        if position > len(node.data):
            node.touch(len(node.data))
            node.data.extend(bytes(position - len(node.data)))
        node.touch(position)
        node.data[position : position + taken] = data[:taken]
        node.modified_ms = self._files.now_ms
        return taken

    def pwrite_ahead(self, data: Bytes, position: int, zeros: int) -> int:
        """Write a range and zeros behind it."""
        return self.pwrite(bytes(data) + bytes(zeros), position)

    def reserve(self, position: int, size: int) -> None:
        """Nothing: memory is not cut into blocks."""

    def size(self) -> int:
        """The length as seen."""
        self._enter("stat")
        return len(self._node.data)

    def truncate(self, size: int) -> None:
        """Cut or grow the file."""
        self._enter("truncate")
        node = self._node
        node.mapped = [pages for pages in node.mapped if pages() is not None]
        assert all(len(pages() or b"") <= size for pages in node.mapped), f"{self._path} shrinks under a mapped view"
        self._files.take(size - len(node.data))
        if node.dirty_from is not None and size < len(node.data):
            node.undone.append((node.dirty_from, node.data[node.dirty_from :]))
        node.touch(min(size, len(node.data)))
        node.uncut = size if node.uncut is None else min(node.uncut, size)
        del node.data[size:]
        node.data.extend(bytes(size - len(node.data)))

    def fdatasync(self) -> None:
        """Put the bytes on the platter."""
        self._enter("fsync")
        self._node.sync()

    def map(self, length: int) -> MemoryMapping:
        """Map the beginning of the file."""
        self._enter("map")
        return MemoryMapping(self._node, length)


class MemoryLock:
    """A lock file of a `MemoryFiles`."""

    __slots__ = ("_files", "_path")

    def __init__(self, files: "MemoryFiles", path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        """Give the lock back."""
        self._files.locks.discard(self._path)


class MemoryFiles:
    """The files port in memory, with the faults a disk can have."""

    def __init__(self, capacity: int = _DISK_BYTES) -> None:
        self.capacity = capacity
        self.used = 0
        self.lives = 0
        self.now_ms = 0
        self.locks: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.tear: list[int] = []
        """How many bytes each of the next writes takes before it stops short."""
        self.before: Callable[[str, str], None] | None = None
        """Called with each operation and path first; raising stops it there (crash at every step)."""
        self._faults: list[tuple[str, str, int]] = []
        self._root = _Directory()
        self._journal: list[_Change] = []

    # Faults

    def fail_next(self, operation: str, code: int = errno.EIO, *, path_contains: str = "") -> None:
        """Let the next `operation` (fsync, fsync_dir, write, create, rename, truncate, …) fail with an errno."""
        self._faults.append((operation, path_contains, code))

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Let one bit rot, in cache and on the platter alike."""
        node = self._file(path)
        node.data[position] ^= 1 << bit
        if position < len(node.durable):
            node.durable[position] ^= 1 << bit

    def power_cut(self, chance: Random | None = None) -> None:
        """Lose what was not synced: all of it, or with a chance just some of it."""
        self.lives += 1
        self.locks.clear()
        self._faults.clear()
        for change in self._journal[: chance.randint(0, len(self._journal)) if chance else 0]:
            change.apply()
        self._journal.clear()
        self._revive(self._root, chance)
        self.used = self._measure(self._root)

    def end_process(self) -> None:
        """End the process that used the disk, and nothing else: its handles, locks and mappings are gone."""
        self.lives += 1
        self.locks.clear()
        self._unmap(self._root)

    def _unmap(self, directory: _Directory) -> None:
        for node in directory.names.values():
            if isinstance(node, _Directory):
                self._unmap(node)
            else:
                node.mapped = []

    def _revive(self, directory: _Directory, chance: Random | None) -> None:
        directory.names = dict(directory.durable)
        for name in sorted(directory.names):
            node = directory.names[name]
            if isinstance(node, _Directory):
                self._revive(node, chance)
            else:
                node.data = node.survivor(chance)
                node.durable = bytearray(node.data)
                node.dirty_from = node.uncut = None
                node.undone.clear()
                node.mapped = []

    def _measure(self, directory: _Directory) -> int:
        return sum(
            self._measure(node) if isinstance(node, _Directory) else len(node.data) for node in directory.names.values()
        )

    def enter(self, operation: str, path: str) -> None:
        """Count a call, and fail it if it was told to."""
        self.calls[operation] += 1
        if self.before is not None:
            self.before(operation, path)
        for fault in self._faults:
            if fault[0] == operation and fault[1] in path:
                self._faults.remove(fault)
                raise OSError(fault[2], os.strerror(fault[2]), path)

    def take(self, growth: int) -> int:
        """Reserve room on the disk, answering how much of it there was."""
        granted = min(growth, self.capacity - self.used)
        self.used += granted
        return granted

    # The port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file, new or existing."""
        self.enter("create" if create else "open", path)
        directory, name = self._place(path)
        node = directory.names.get(name)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = _Node()
            node.modified_ms = self.now_ms
            self._record((directory, name, node))
        opened = MemoryFile(self, path, node)
        if create and node.data:
            opened.truncate(0)
        return opened

    def read(self, path: str) -> bytes:
        """A whole file."""
        self.enter("read", path)
        return bytes(self._file(path).data)

    def stat(self, path: str) -> FileStat | None:
        """Facts about a path."""
        self.enter("stat", path)
        node = self._find(path)
        if node is None:
            return None
        if isinstance(node, _Directory):
            return FileStat(0, 0, True)
        return FileStat(len(node.data), node.modified_ms, False)

    def listdir(self, path: str) -> list[str]:
        """Names in a directory."""
        self.enter("listdir", path)
        return list(self._directory(path).names)

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents."""
        self.enter("mkdir", path)
        here = self._root
        for name in _parts(path):
            found = here.names.get(name)
            if found is None:
                found = _Directory()
                self._record((here, name, found))
            if not isinstance(found, _Directory):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            here = found

    def rename(self, source: str, target: str) -> None:
        """Rename in one journaled step."""
        self.enter("rename", source)
        node = self._find(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        from_directory, from_name = self._place(source)
        to_directory, to_name = self._place(target)
        there = to_directory.names.get(to_name)
        if isinstance(there, _Directory) and there.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        if isinstance(there, _Node) and there is not node:
            self.used -= len(there.data)
        self._record((from_directory, from_name, None), (to_directory, to_name, node))

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.enter("unlink", path)
        node = self._find(path)
        if isinstance(node, _Node):
            self.used -= len(node.data)
            self._record((*self._place(path), None))

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        self.enter("rmdir", path)
        node = self._find(path)
        if isinstance(node, _Directory):
            if node.names:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
            self._record((*self._place(path), None))

    def fsync_dir(self, path: str) -> None:
        """Put a directory's names on the platter."""
        self.enter("fsync_dir", path)
        directory = self._directory(path)
        rest = []
        for change in self._journal:
            if any(step[0] is directory for step in change.steps):
                change.apply()
            else:
                rest.append(change)
        self._journal = rest

    def space(self, path: str) -> Space:
        """Room left."""
        return Space(self.capacity, self.capacity - self.used)

    def lock(self, path: str) -> MemoryLock | None:
        """Take a lock file."""
        if path in self.locks:
            return None
        self.locks.add(path)
        return MemoryLock(self, path)

    # Names

    def _record(self, *steps: tuple[_Directory, str, _Node | _Directory | None]) -> None:
        for directory, name, node in steps:
            if node is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = node
        self._journal.append(_Change(*steps))

    def _find(self, path: str) -> "_Node | _Directory | None":
        here: _Node | _Directory | None = self._root
        for name in _parts(path):
            if not isinstance(here, _Directory):
                return None
            here = here.names.get(name)
        return here

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _file(self, path: str) -> _Node:
        node = self._find(path)
        if not isinstance(node, _Node):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._directory(parent), name


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
