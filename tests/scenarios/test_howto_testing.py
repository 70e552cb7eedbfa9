"""The how-to on testing with Headrace, run as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/howto/testing.md"
BLOCK = re.compile(r"^```python\n# (test_\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.clients
def test_examples_work_as_they_stand(tmp_path):
    """Does every example of the page pass, as a file of its own in an empty project (R20)?"""
    examples = dict(BLOCK.findall(PAGE.read_text()))
    for name, code in examples.items():
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    # An installed package is found by its entry point; the repository's own copy has to be named.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_PLUGINS": "headrace.testing.pytest_plugin"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert len(examples) == PAGE.read_text().count("```python")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^8 passed", ran.stdout, re.MULTILINE), ran.stdout


def test_every_call_is_there():
    """Does the page name all there is to call, and nothing else?"""
    from headrace.testing import Cluster

    text = PAGE.read_text()
    public = {name for name in vars(Cluster) if not name.startswith("_")} - {"broker"}

    assert [name for name in sorted(public) if f"`{name}" not in text and f"`cluster.{name}" not in text] == []
