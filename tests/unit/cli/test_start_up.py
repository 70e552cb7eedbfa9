"""A tool that only asks a broker something answers at once, which it can only if it loads little."""

import subprocess
import sys

import pytest

from headrace.cli.main import COMMANDS, TOOLS

HEAVY = ("argparse", "confluent_kafka", "headrace.broker", "headrace.storage", "multiprocessing", "tempfile", "uvloop")
"""What takes long to load, and no question to a broker needs."""
MORE_THAN_ASKING = (
    *("kafka-console-consumer", "kafka-console-producer", "kafka-console-share-consumer", "kafka-e2e-latency"),
    *("kafka-consumer-perf-test", "kafka-producer-perf-test", "kafka-dump-log", "kafka-storage"),
    *("kafka-server-start", "kafka-server-stop"),
)
ASKING = {
    **{name: module for name, module in TOOLS.items() if name not in MORE_THAN_ASKING},
    **{name: COMMANDS[name] for name in ("health", "topics", "groups", "profile", "completion", "version")},
}


@pytest.mark.parametrize("name", ASKING)
def test_nothing_heavy_is_loaded(name):
    """Does loading a tool that asks leave out everything that takes long to load?"""
    script = (
        "import sys, headrace.cli.main\n"
        f"__import__('{ASKING[name]}')\n"
        f"print([heavy for heavy in {HEAVY} if heavy in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")
