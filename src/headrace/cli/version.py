"""`headrace version`: which version this is, and of what Python; and what every tool says of its own."""

from collections.abc import Sequence

import headrace

KAFKA_VERSION = "4.3.1"
"""The release of Kafka whose tools these are."""


def tool_version() -> str:
    """What a tool of Kafka's name answers to --version: as Kafka's does, and whose it is."""
    return f"{KAFKA_VERSION} (Headrace {headrace.__version__})"


def main(arguments: Sequence[str], program: str) -> int:
    """Print one line."""
    import platform

    print(f"Headrace {headrace.__version__} (Python {platform.python_version()})")
    return 0
