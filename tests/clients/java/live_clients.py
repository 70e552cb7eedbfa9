"""Java clients that live from one line of a test to the next: group members, share consumers, producers, the admin.

The programs behind them (Members, ShareMembers, Transactors, GroupAdmin) keep their clients in the runner's JVM, so
that a test can say step by step who does what. Waiting is asking again until a deadline.
"""

import json
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from headrace.testing.java_runner import JavaRunner

DEADLINE_S = 30.0
_PAUSE_S = 0.01
_NAMES = count()


class DidNotHappen(Exception):
    """A test waited for its deadline; the message shows the last it saw."""


def until(question: Callable[[], Any], is_so: Callable[[Any], bool], what: str, *, within_s: float = DEADLINE_S) -> Any:
    """Ask until the answer is as it should be, and give it."""
    end = time.monotonic() + within_s
    while not is_so(answer := question()):
        if time.monotonic() > end:
            raise DidNotHappen(f"{what}: {answer}")
        time.sleep(_PAUSE_S)  # the pause between two looks, not the wait itself
    return answer


class Members:
    """Live members of groups, each polling on a thread of its own in the JVM."""

    def __init__(self, java: JavaRunner, bootstrap: str) -> None:
        self._java = java
        self._bootstrap = bootstrap
        self._live: set[str] = set()

    def start(self, group: str, topics: str, *settings: str) -> str:
        """Start a member; gives the name to call it by, which is its client id too."""
        name = f"member-{next(_NAMES)}"
        self._run("start", name, self._bootstrap, topics, f"group.id={group}", f"client.id={name}", *settings)
        self._live.add(name)
        return name

    def state(self, name: str) -> dict[str, Any]:
        """Assignment, number of records, rebalance events, generation, member id and error of a member."""
        return self._run("state")[name]

    def assigned(self, *names: str) -> list[list[str]]:
        """What each of them holds now."""
        state = self._run("state")
        return [state[name]["assigned"] for name in names]

    def until_share(
        self, names: Iterable[str], partitions: Iterable[str], *, each: int | None = None
    ) -> list[list[str]]:
        """Wait until they hold these partitions between them, each once, and everybody some, or `each` of them."""
        names, wanted = list(names), sorted(partitions)

        def is_so(held: list[list[str]]) -> bool:
            sizes = {len(one) for one in held}
            return sorted(place for one in held for place in one) == wanted and (
                0 not in sizes if each is None else sizes == {each}
            )

        return until(lambda: self.assigned(*names), is_so, f"{names} share {wanted}")

    def records(self, name: str) -> list[tuple[str, int, int, str]]:
        """Topic, partition, offset and value of everything a member received."""
        return [tuple(record) for record in self._run("records", name)]

    def until_received(self, names: Iterable[str], wanted: int) -> list[tuple[str, int, int, str]]:
        """Wait until they received so many records between them; gives them in order of their places."""
        names = list(names)

        def received() -> int:
            state = self._run("state")
            return sum(state[name]["records"] for name in names)

        until(received, lambda seen: seen >= wanted, f"{names} receive {wanted} records")
        return sorted(record for name in names for record in self.records(name))

    def ask(self, name: str, verb: str, *words: str) -> Any:
        """Let a member do something on its own thread: commit, committed, seek, pause, resume, rebalance."""
        return self._run("ask", name, verb, *words)

    def close(self, *names: str) -> list[int]:
        """Close them; the milliseconds each took."""
        taken = []
        for name in names:
            self._live.discard(name)
            closed = self._run("close", name)
            assert closed["closed"], f"{name} did not close"
            taken.append(closed["ms"])
        return taken

    def close_all(self) -> None:
        """Close whoever is left."""
        self.close(*sorted(self._live))

    def _run(self, *words: object) -> Any:
        return json.loads(self._java.check("Members", *words, timeout_s=90).out)


class ShareMembers:
    """Live share consumers."""

    def __init__(self, java: JavaRunner, bootstrap: str) -> None:
        self._java = java
        self._bootstrap = bootstrap
        self._live: set[str] = set()

    def start(self, group: str, topic: str, *settings: str) -> str:
        """Start a share consumer; gives the name to call it by."""
        name = f"sharer-{next(_NAMES)}"
        self._run("start", name, self._bootstrap, group, topic, f"client.id={name}", *settings)
        self._live.add(name)
        return name

    def poll(self, name: str, *, within_s: float = DEADLINE_S) -> list[list[Any]]:
        """Poll until something comes: partition, offset, value and delivery count of each record."""
        return self._run("poll", name, int(within_s * 1000))

    def acknowledge(self, name: str, kind: str) -> list[str]:
        """Answer all records of the last poll alike (ACCEPT, RELEASE, REJECT); gives the errors."""
        return self._run("acknowledge", name, kind)

    def close(self, *names: str) -> None:
        """Close them."""
        for name in names:
            self._live.discard(name)
            self._run("close", name)

    def close_all(self) -> None:
        """Close whoever is left."""
        self.close(*sorted(self._live))

    def _run(self, *words: object) -> Any:
        return json.loads(self._java.check("ShareMembers", *words, timeout_s=90).out)


class Transactor:
    """One live transactional producer; each step gives "ok", an offset, or "error" and the exception's name."""

    def __init__(self, java: JavaRunner, bootstrap: str, transactional_id: str, *settings: str) -> None:
        self._java = java
        self.name = f"transactor-{next(_NAMES)}"
        java.check("Transactors", "open", self.name, bootstrap, transactional_id, *settings)

    def __getattr__(self, step: str) -> Callable[..., str]:
        """`init`, `begin`, `send`, `offsets`, `commit`, `abort` and `close`."""
        return lambda *words: self._java.check("Transactors", "do", self.name, step, *words, timeout_s=90).out.strip()
