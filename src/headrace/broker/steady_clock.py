"""A clock that never jumps, by which replicas measure how long ago something was."""

import time


def steady_ms() -> int:
    """Milliseconds since some moment; only differences mean anything."""
    return time.monotonic_ns() // 1_000_000
