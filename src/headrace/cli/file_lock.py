"""A lock on an open file that the operating system drops when its owner dies, so it is never stale."""

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: IO[str]) -> bool:
        """Take the lock if nobody holds it; it is held until the file is closed."""
        try:
            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    _LOCKED_BYTE = 1 << 30
    """Windows also forbids reading a locked range, so a byte far behind the content is locked."""

else:
    import fcntl

    def try_lock(file: IO[str]) -> bool:
        """Take the lock if nobody holds it; it is held until the file is closed."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
