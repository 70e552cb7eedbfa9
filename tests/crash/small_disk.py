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
from pathlib import Path

_EXT4_IOC_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2
_COMMAND_TIMEOUT_S = 30
_UNMOUNT_ATTEMPTS = 50
_FILL_ATTEMPTS = 1_000
_UNMOUNT_PAUSE_S = "0.1"


class NoImage(Exception):
    """Images cannot be mounted on this machine; the message says why."""


class Ext4Image:
    """An ext4 image, mounted on a directory."""

    def __init__(self, image: Path, directory: Path, *, megabytes: int) -> None:
        self.image = image
        self.directory = directory
        if sys.platform != "linux" or os.geteuid() != 0:
            raise NoImage("mounting an image takes Linux and root")
        for tool in ("mkfs.ext4", "mount", "umount"):
            if shutil.which(tool) is None:
                raise NoImage(f"there is no {tool}")
        directory.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        # No blocks reserved for root, which is who we are: a full disk shall be full.
        self._run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", str(image))
        self.mount()

    def mount(self) -> None:
        """Mount it; after a cut this recovers the journal."""
        # The loop device goes by itself with the unmount.
        self._run("mount", "-o", "loop", str(self.image), str(self.directory))

    def unmount(self) -> None:
        """Unmount it, waiting for those who still have a file open."""
        for _ in range(_UNMOUNT_ATTEMPTS):
            with contextlib.suppress(NoImage):
                self._run("umount", str(self.directory))
                return
            self._run("sleep", _UNMOUNT_PAUSE_S)
        self._run("umount", "--lazy", str(self.directory))

    def fill(self) -> Path:
        """Leave not a single block free; the file that takes them all."""
        filler = self.directory / "filler"
        with filler.open("ab", buffering=0) as file:
            for _ in range(_FILL_ATTEMPTS):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * 65536):
                        pass
                with contextlib.suppress(OSError):
                    os.fsync(file)
                if os.statvfs(self.directory).f_bavail == 0:
                    return filler
        raise NoImage("the image cannot be filled up")

    def cut_power(self) -> None:
        """Lose everything that was not flushed, now."""
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if os.path.ismount(self.directory):
            self.unmount()
        self.image.unlink(missing_ok=True)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise NoImage(f"{' '.join(command)}: {done.stderr.strip()}")
