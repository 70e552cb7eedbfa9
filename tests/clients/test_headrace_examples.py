"""The examples, and the programs in the documents, run and say what they are meant to say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
OUTPUT = {
    "send_and_read.py": (
        "stored at offset 0\nstored at offset 1\nstored at offset 2\n"
        "T-0042: 62 km/h\nT-0042: 71 km/h\nT-0042: 80 km/h\n"
    ),
    "async_echo.py": "ONE\nTWO\nTHREE\n",
    "transfer.py": "invoice 0\ninvoice 1\ninvoice 2\n",
    "administration.py": (
        "parcels has 3 partitions\nrecords are kept for 3600000 ms\nsorters go on at 0\nparcels is gone\n"
    ),
}


@pytest.mark.parametrize("name", OUTPUT)
def test_example(name):
    """Does an example print what it promises against a fresh broker?"""
    with Cluster() as cluster:
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / name, cluster.bootstrap],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert (OUTPUT[name], "") == (done.stdout, done.stderr)


def test_programs_in_the_guide(tmp_path):
    """Does every program in the guide to the clients pass as the test it is?"""
    guide = (ROOT / "docs/howto/clients.md").read_text()
    programs = re.findall(r"```python\n# (test_\w+\.py)\n(.*?)```", guide, re.DOTALL)
    for name, program in programs:
        (tmp_path / name).write_text(program)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "headrace.testing.pytest_plugin",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1", "PATH": ""},
    )

    wanted = guide.count("\ndef test_")
    assert len(programs) >= 5
    assert f"{wanted} passed" in done.stdout, done.stdout + done.stderr
