"""The README's tour, typed as it stands into a fresh copy of the project."""

import re
import subprocess
import sys

import pytest
from tests.scenarios.project_copy import ROOT, clean_environment, copy_project

from headrace.testing.ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    pytest.mark.skipif(sys.platform == "win32", reason="the tour is typed into a POSIX shell"),
]

SETUP_S = 240
"""The first command sets up its environment; how long pip takes for that on a busy machine is not the question."""


def tour() -> list[tuple[str, str]]:
    """Every block of commands in the tour, with the output shown beneath it ("" if none is)."""
    section = (ROOT / "README.md").read_text().split("## Five minutes")[1].split("\n## ")[0]
    blocks = re.findall(r"```(sh)?\n(.*?)```", section, re.DOTALL)
    found: list[tuple[str, str]] = []
    for language, text in blocks:
        if language:
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return found


@pytest.fixture
def fresh_copy(tmp_path):
    """The project as a clone would be, except that its broker listens on ports that are free."""
    copy = copy_project(tmp_path)
    ports = {"9092": str(free_port()), "9093": str(free_port())}
    for name in ("config/server.properties", "examples/first_events.py"):
        text = re.sub(r"\b909[23]\b", lambda match: ports[match[0]], (copy / name).read_text())
        (copy / name).write_text(text)
    return copy, ports


def test_tour_works_as_typed(fresh_copy, tmp_path):
    """Does every command of the README's tour succeed in order, and print what the README shows? (R17)"""
    copy, ports = fresh_copy
    environment = clean_environment(tmp_path)
    steps = tour()
    try:
        for commands, shown in steps:
            done = subprocess.run(
                ["sh", "-e", "-c", commands.replace("9092", ports["9092"])],
                cwd=copy,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=SETUP_S,
            )

            assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
            assert done.stdout.endswith(shown), f"{commands}\n{done.stdout}"
    finally:
        subprocess.run(
            [copy / "bin/headrace", "server", "stop"],
            env=environment,
            check=False,
            capture_output=True,
            timeout=150,
        )

    assert len(steps) == 7
    assert (copy / "data/kraft-combined-logs/first-events-0/00000000000000000000.log").stat().st_size > 0
    assert (copy / "logs/server.log").exists()
