"""What one step of a coordinator's core decided, for its shell to carry out.

A core is the state of one partition of a coordinator's topic. Each step reads and changes it, names the records that
make the change permanent, and says whom to answer, when to be woken, and what else must happen.
A record takes effect in one place only, the core's `replay`, which a step calls for each record as it decides it; so
the state after any step is what replaying the log would give.
Should the log refuse the records, the shell throws the core away and reads the log again: nobody was answered yet.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

Entry = tuple[Any, Any]
"""A record's key and value, both from `model`; None as value forgets the key."""

Token = Any
"""Who waits for a reply; the shell's business, a core only keeps it and hands it back."""

TimerKey = tuple[Any, ...]
"""Names a timer, for instance ("session", group_id, member_id); setting it again moves it."""


class Outcome(Struct):
    """One decision."""

    records: list[Entry] = field(default_factory=list)
    """To be written as one batch: all of it survives, or nothing does."""
    replies: list[tuple[Token, Any]] = field(default_factory=list)
    """Given when everything written so far is safe; a KafkaError is raised to who waits."""
    timers: list[tuple[TimerKey, int | None]] = field(default_factory=list)
    """When to call the core's `on_timer`, in clock milliseconds; None cancels."""
    effects: list[Any] = field(default_factory=list)
    """What the shell must do besides, once the records are safe; the core's own vocabulary."""
    producer: tuple[int, int] | None = None
    """Producer id and epoch, where the records belong to a transaction of somebody else."""

    def reply(self, token: Token, answer: Any) -> Outcome:
        """Answer one who waits."""
        self.replies.append((token, answer))
        return self

    def wake(self, key: TimerKey, at_ms: int) -> None:
        """Set a timer."""
        self.timers.append((key, at_ms))

    def cancel(self, key: TimerKey) -> None:
        """Forget a timer, set or not."""
        self.timers.append((key, None))
