"""`headrace version`: which version this is, and of what Python."""

import platform
from collections.abc import Sequence

import headrace


def main(arguments: Sequence[str], program: str) -> int:
    """Print one line."""
    print(f"Headrace {headrace.__version__} (Python {platform.python_version()})")
    return 0
