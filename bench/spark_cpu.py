"""What a process and everything under it has used, also those that have ended meanwhile.

The kernel adds a child's time to its parent's when the parent waits for it. Spark's Python daemons never wait for
their workers, so that what a worker used would be gone with it: to whoever adds up at the end, a data source in
Python would look cheaper than it is. So somebody looks all the time, and remembers what each process had used when it
was last seen.
"""

import os
import time
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final, NamedTuple

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_EVERY_S: Final = 0.1
"""What a process uses after it was last seen is lost; it is also what looking costs: a few thousandths of a second."""


class _Seen(NamedTuple):
    """One process: who it is (ids are used again, so the time it started is part of it), and what it has used."""

    pid: int
    parent: int
    started: int
    seconds: float


class Accounts:
    """The CPU of a family of processes, watched by a thread until it is closed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._used: dict[tuple[int, int], float] = {}
        self._lock = Lock()
        self._watching_s = 0.0
        self._closed = Event()
        self._watcher = Thread(target=self._watch, name="accounts", daemon=True)
        self._watcher.start()

    def seconds(self) -> float:
        """What the family has used so far."""
        self.look()
        with self._lock:
            return sum(self._used.values())

    def own_seconds(self) -> float:
        """What this process has used so far, without the watching."""
        with self._lock:
            return time.process_time() - self._watching_s

    def look(self) -> None:
        """Remember what everybody has used by now."""
        begin = time.thread_time()
        seen = _everybody()
        with self._lock:
            # Whoever was of the family stays in it, whoever has adopted him since.
            family = {self._root} | {one.pid for one in seen if (one.pid, one.started) in self._used}
            found = family
            while found:
                found = {one.pid for one in seen if one.parent in found} - family
                family |= found
            for one in seen:
                if one.pid in family:
                    # Two who look at once may come here in the wrong order.
                    self._used[one.pid, one.started] = max(one.seconds, self._used.get((one.pid, one.started), 0.0))
            self._watching_s += time.thread_time() - begin

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._closed.wait(_EVERY_S):
            self.look()


def _everybody() -> list[_Seen]:
    """All processes there are."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times a second
        if name.isdecimal():
            try:
                text = Path(f"/proc/{name}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            fields = text[text.rindex(")") + 2 :].split()
            used = (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
            found.append(_Seen(pid=int(name), parent=int(fields[1]), started=int(fields[19]), seconds=used))
    return found
