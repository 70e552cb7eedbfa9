"""Command-line parsing with Kafka's manners: no abbreviations, and a usage error exits 1."""

import argparse
import sys
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser for a tool."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, after the usage."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")
