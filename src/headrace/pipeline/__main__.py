"""The program that spark-submit takes: `spark-submit .../headrace/pipeline/__main__.py FILE`.

The same pipeline, on the master and with the settings spark-submit was told. `headrace pipeline run` is the comfortable
way on one machine.
"""

import argparse
import os
import sys
from pathlib import Path

# Called by its path, Python looks for modules here first, where ours would hide others of the same name.
if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):  # noqa: PTH100, PTH120
    del sys.path[0]

from headrace.model.errors import HeadraceError
from headrace.pipeline.display import display_for
from headrace.pipeline.file import load_pipeline
from headrace.pipeline.session import Wishes, run_pipeline


def main() -> int:
    """Run the pipeline of a file; the exit code."""
    parser = argparse.ArgumentParser(prog="headrace.pipeline", description="Run the pipeline of a file on Spark.")
    parser.add_argument("file", type=Path, help="the TOML file")
    parser.add_argument("--bootstrap-server", default="", help="the brokers, instead of those in the file")
    parser.add_argument("--master", default="", help="the Spark master, instead of spark-submit's")
    parser.add_argument("--available-now", "--once", action="store_true", help="take what is there, then end")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how to print progress")
    given = parser.parse_args()
    wishes = Wishes(brokers=given.bootstrap_server, master=given.master, is_available_now=given.available_now)
    display = display_for(sys.stdout, sys.stderr, is_json=given.output == "json")
    try:
        return run_pipeline(load_pipeline(given.file), wishes, display)
    except HeadraceError as error:
        print(error, file=sys.stderr)  # noqa: T201  A program for the command line.
        return 1


if __name__ == "__main__":
    sys.exit(main())
