"""headrace bench: measure this broker beside Apache Kafka, on this machine.

Only a door: the benchmark is a program of the project directory, because it measures the code that lies there.
"""

import subprocess
import sys
from collections.abc import Sequence

from headrace.cli.layout import project_root


def main(arguments: Sequence[str], program: str) -> int:
    """Run the project's benchmark with the interpreter that runs us."""
    root = project_root()
    if root is None:
        print(f"{program} runs from a project directory, and this is an installed package.", file=sys.stderr)
        return 1
    return subprocess.call([sys.executable, "-m", "bench", *arguments], cwd=root)
