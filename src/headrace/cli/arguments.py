"""Command-line parsing with Kafka's manners: no abbreviations, and a usage error exits 1."""

import argparse
import sys
from typing import Any, NoReturn

from headrace.cli.report import TEXT
from headrace.cli.tool import OUTPUT_FORMATS
from headrace.cli.version import tool_version


class Parser(argparse.ArgumentParser):
    """An argument parser for a tool."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.add_argument("--version", action="version", version=tool_version(), help="show the version and exit")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, after the usage."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def add_output(*parsers: argparse.ArgumentParser) -> None:
    """Give each of them the option that every tool has: results for people, or for programs."""
    for parser in parsers:
        parser.add_argument("--output", choices=OUTPUT_FORMATS, default=TEXT, help="how to print results")
