"""The connections that a process keeps from task to task."""

import os
import subprocess
import sys

from headrace.client.options import connection_options
from headrace.spark import links

TASK = """
import sys
from headrace.client.options import connection_options
from headrace.spark.links import links_to
print(len(links_to(connection_options(sys.argv[1])).metadata(()).brokers))
"""


def test_a_process_that_ends_hangs_up(shared):
    """Is no connection left to the collector, which would complain of it, when a process has run its last task?"""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "default::ResourceWarning", "-c", TASK, shared.bootstrap],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert ("1\n", "") == (done.stdout, done.stderr)


def test_only_its_own_connections(shared, monkeypatch):
    """Does a process leave alone what it has from the one it was forked from?"""
    options = connection_options(shared.bootstrap)
    inherited = links.Links(options)
    monkeypatch.setattr(links, "_KNOWN", {(0, options): inherited})
    links.links_to(options).metadata(())

    links.hang_up()

    assert [inherited] == list(links._KNOWN.values())
