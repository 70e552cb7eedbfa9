"""zookeeper-server-stop: there never is one to stop, and it says so as Kafka 3's script did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str], program: str) -> int:
    """Kafka's sentence and exit code for nothing to stop."""
    print("No zookeeper server to stop")
    return 1
