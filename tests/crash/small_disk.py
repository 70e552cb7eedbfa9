"""A file system of its own for a broker: small enough to fill up, and with a plug that can be pulled.

The plug is ext4's shutdown ioctl without a log flush: whatever was not flushed is gone at once, further writes fail,
and the next mount recovers the journal, as after a power cut. It does not model a drive that lies about flushes.
"""

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

_EXT4_IOC_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2
_COMMAND_TIMEOUT_S = 30
_UNMOUNT_ATTEMPTS = 50
_DIRECTORIES_MAX = 10_000
_UNMOUNT_PAUSE_S = "0.1"


class NoImage(Exception):
    """Images cannot be mounted on this machine; the message says why."""


class SmallDisk:
    """A file system in memory with little room, for where images cannot be mounted."""

    def __init__(self, directory: Path, *, megabytes: int) -> None:
        self.directory = directory
        self._filler = directory / "filler"
        if sys.platform != "linux" or os.geteuid() != 0:
            raise NoImage("mounting takes Linux and root")
        directory.mkdir(parents=True)
        self._make(megabytes)

    def _make(self, megabytes: int) -> None:
        self._run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(self.directory))

    def unmount(self) -> None:
        """Unmount it, waiting for those who still have a file open."""
        for _ in range(_UNMOUNT_ATTEMPTS):
            with contextlib.suppress(NoImage):
                self._run("umount", str(self.directory))
                return
            self._run("sleep", _UNMOUNT_PAUSE_S)
        self._run("umount", "--lazy", str(self.directory))

    def fill(self) -> None:
        """Leave no block free, for a file or for a directory."""
        self._filler.mkdir()
        with (self._filler / "file").open("ab", buffering=0) as file:
            for size in (65536, 1024):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass
            with contextlib.suppress(OSError):
                os.fsync(file)
        with contextlib.suppress(OSError):
            for number in range(_DIRECTORIES_MAX):
                (self._filler / str(number)).mkdir()

    def free(self) -> None:
        """Give back what `fill` took."""
        shutil.rmtree(self._filler)

    def remove(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if os.path.ismount(self.directory):
            self.unmount()

    def _run(self, *command: str) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
        except FileNotFoundError as missing:
            raise NoImage(f"there is no {command[0]}") from missing
        if done.returncode != 0:
            raise NoImage(f"{' '.join(command)}: {done.stderr.strip()}")


class Ext4Image(SmallDisk):
    """An ext4 image on a loop device, whose power can be cut."""

    def __init__(self, image: Path, directory: Path, *, megabytes: int) -> None:
        self.image = image
        super().__init__(directory, megabytes=megabytes)

    def _make(self, megabytes: int) -> None:
        with self.image.open("wb") as file:
            file.truncate(megabytes << 20)
        # No blocks reserved for root, which is who we are: a full disk shall be full.
        self._run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", str(self.image))
        self.mount()

    def mount(self) -> None:
        """Mount it; after a cut this recovers the journal."""
        # The loop device goes by itself with the unmount.
        self._run("mount", "-o", "loop", str(self.image), str(self.directory))

    def unmount(self) -> None:
        """Also wait until nobody has it mounted: `ip` copies all mounts for as long as it runs.

        A disk that is mounted anywhere would not be recovered by the next mount: its power would still be off.
        """
        super().unmount()
        deadline = time.monotonic() + _COMMAND_TIMEOUT_S
        while self._is_attached():
            assert time.monotonic() < deadline, f"{self.image} is still mounted somewhere"

    def _is_attached(self) -> bool:
        done = subprocess.run(
            ["losetup", "--associated", str(self.image)],
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=True,
        )
        return bool(done.stdout)

    def cut_power(self) -> None:
        """Lose everything that was not flushed, now."""
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """The image too."""
        super().remove()
        self.image.unlink(missing_ok=True)
