"""`headrace python`: the interpreter Headrace runs on, with a Kafka client installed, for people's own scripts."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from headrace.cli.extras import ensure_extra
from headrace.cli.profile import load_profile
from headrace.model.errors import HeadraceError


def main(arguments: Sequence[str], program: str) -> int:
    """Become that Python."""
    ensure_extra("client")
    with suppress(HeadraceError):
        address = load_profile(None).get("bootstrap.servers")
        if address:
            # Our clients begin there if they are told nothing else, and so do the examples.
            os.environ.setdefault("HEADRACE_BOOTSTRAP_SERVERS", address)
    command = [sys.executable, *arguments]
    if sys.platform != "win32":
        os.execv(sys.executable, command)
    # Windows has no way to become another program: exec there returns to the prompt while the new one still runs.
    return subprocess.call(command)
