"""Our tool and Kafka's own, asked the same of the same broker; what they print must be the same."""

import importlib
import re
from typing import Any

from clients.java.live_clients import until
from headrace.testing.java_runner import JavaRun, JavaRunner

LOOKS = frozenset({"--describe", "--list", "list", "describe", "describe-producers", "find-hanging"})
# What only one of them says: a Java tool's exit as the runner sees it, traces, what goes to a log, and our advice.
_ONLY_ONE = ("exit 0", "Runner$Exited", "\tat ", "New offset", "com.fasterxml", " at [Source", "`abort` with")
_LOOKS = 3
Ours = tuple[int, str, str]


class ToolPair:
    """One of our tools beside Kafka's."""

    def __init__(self, java: JavaRunner, bootstrap: str, capsys: Any, module: str, program: str) -> None:
        self._java = java
        self._bootstrap = bootstrap
        self._capsys = capsys
        self._module = importlib.import_module(f"headrace.cli.{module}")
        self._program = program

    def ours(self, *arguments: object) -> Ours:
        """Run our tool; its exit code and what it printed."""
        self._capsys.readouterr()
        typed = ["--bootstrap-server", self._bootstrap, *map(str, arguments)]
        code = self._module.main(typed, self._module.TOOL.name)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def theirs(self, *arguments: object) -> JavaRun:
        """Run Kafka's tool."""
        return self._java.run(self._program, "--bootstrap-server", self._bootstrap, *arguments)

    def alike(self, *arguments: object, in_order: bool = True, without: str = "") -> int:
        """Compare the two; gives our exit code, which is 0 only if all went well.

        `without` is a pattern of what differs by nature, a duration for one. What only looks is asked of Kafka's tool
        once before ours and once after, because a live group must not move in between; and again if they differ,
        because it may have moved there and back.
        """

        def plain(text: str) -> str:
            return re.sub(without, "", text) if without else text

        def ask() -> tuple[JavaRun, Ours, JavaRun]:
            before, mine = self.theirs(*arguments), self.ours(*arguments)
            return before, mine, self.theirs(*arguments) if arguments[0] in LOOKS else before

        def shown(text: str) -> list[str]:
            return plain(text).splitlines() if in_order else sorted(plain(text).splitlines())

        for _ in range(_LOOKS if arguments[0] in LOOKS else 1):
            theirs, (code, out, err), _ = until(
                ask, lambda three: plain(three[0].out) == plain(three[2].out), "what is looked at stands still"
            )
            if shown(theirs.out) == shown(out):
                break
        assert shown(theirs.out) == shown(out)
        if code == 0:
            assert _remarks(theirs.err) == _remarks(err)
        return code


def _remarks(text: str) -> list[str]:
    """What a tool says besides its result."""
    return [line for line in text.splitlines() if line and not any(word in line for word in _ONLY_ONE)]
