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
    "activity_tracking.py": (
        "most viewed: /lamps 2\nada: /lamps > reading lamp > /lamps/12 > /lamps/12\nbob: /chairs > /lamps\n"
    ),
    "metrics.py": (
        "web-1 minute 0: 0.25\nweb-1 minute 1: 0.97  too busy!\nweb-2 minute 0: 0.45\nweb-2 minute 1: 0.35\n"
    ),
    "log_collection.py": "error in shipping: no lorry left\nbilling.log: 1 lines\nshipping.log: 2 lines\n",
    "request_reply.py": "ladder: 80\nnails: 3\nelephant: not for sale\n",
    "publish_subscribe.py": "".join(
        f"{service} heard order 1, order 2, order 3, order 4\n" for service in ("billing", "shipping", "statistics")
    ),
}


# Those whose output tells of offsets, or that read from the beginning, say something else the second time.
ONLY_ONCE = {"send_and_read.py", "async_echo.py", "transfer.py"}


@pytest.mark.parametrize("name", OUTPUT)
def test_example(name):
    """Does an example print what it promises against a fresh broker, and again when it is run again (R31)?"""
    with Cluster() as cluster:
        for _ in range(1 if name in ONLY_ONCE else 2):
            done = subprocess.run(
                [sys.executable, ROOT / "examples" / name, cluster.bootstrap],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )

            assert (OUTPUT[name], "") == (done.stdout, done.stderr)


def test_every_example_is_listed():
    """Does the page of examples name each program there is, and is each short enough to be one?"""
    programs = list((ROOT / "examples").glob("*.py"))
    page = (ROOT / "docs/howto/examples.md").read_text()

    assert {program.name for program in programs} == set(re.findall(r"\.\./examples/(\w+\.py)", page))
    assert all(len(program.read_text().splitlines()) < 60 for program in programs)


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
