"""`headrace spark`: the interpreter Headrace runs on, with Spark and its data source, for people's own scripts."""

import os
from collections.abc import Sequence

from headrace.cli import python
from headrace.cli.extras import ensure_extra


def main(arguments: Sequence[str], program: str) -> int:
    """Become that Python."""
    ensure_extra("spark")
    from headrace.spark.java import find_java, java_home

    os.environ.setdefault("JAVA_HOME", str(java_home(find_java())))
    return python.main(arguments, program)
