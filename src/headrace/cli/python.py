"""`headrace python`: the interpreter Headrace runs on, with a Kafka client installed, for people's own scripts."""

import os
import subprocess
import sys
from collections.abc import Sequence

from headrace.cli.extras import ensure_extra


def main(arguments: Sequence[str], program: str) -> int:
    """Become that Python."""
    ensure_extra("client")
    command = [sys.executable, *arguments]
    if sys.platform != "win32":
        os.execv(sys.executable, command)
    # Windows has no way to become another program: exec there returns to the prompt while the new one still runs.
    return subprocess.call(command)
