"""The parts of the set-up that need no environment: explanations, progress, locks, extras."""

import io
import re
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import pytest

from headrace.cli import extras
from headrace.cli.bootstrap import SetupError, explain
from headrace.cli.extras import ensure_extra, has_extra
from headrace.cli.file_lock import try_lock
from headrace.cli.progress import Progress, bar

NO_NETWORK = """\
WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(': Failed to connect
ERROR: Could not find a version that satisfies the requirement uvloop==1 (from versions: none)
ERROR: No matching distribution found for uvloop==1
"""
WRONG_HASH = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.
"""

HOLD = """
import sys
from headrace.cli.file_lock import try_lock
with open(sys.argv[1], "a") as file:
    print(try_lock(file), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (NO_NETWORK, "Headrace could not reach the Python package index to fetch the packages it needs."),
        (WRONG_HASH, "Headrace's packages could not be installed: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE"),
        ("Killed\n", "Headrace's packages could not be installed: pip gave no reason."),
    ],
)
def test_explanation(output, problem):
    """Is pip's failure told as what a person can act on?"""
    error = explain(deque(output.splitlines(keepends=True)), Path(".cache/setup.log"))

    assert str(error).startswith(problem)
    assert len(str(error).splitlines()) == 2


def test_lock_dies_with_its_owner(tmp_path):
    """Is a held lock refused to others, and free at once when its owner is killed?"""
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder, path.open("a") as file:
        assert holder.stdout.readline() == "True\n"
        assert not try_lock(file)

        holder.kill()
        holder.wait()

        assert try_lock(file)


def test_progress_in_a_pipe_is_plain_lines():
    """Where lines cannot be redrawn, is every step one plain line and every detail left out?"""
    stream = io.StringIO()

    with Progress(stream) as progress:
        progress.say("fetching")
        progress.detail("fetching this")
        progress.say("installing", share=0.5)

    assert stream.getvalue() == "Headrace: fetching\nHeadrace: installing\n"


def test_progress_on_a_terminal_redraws_one_line():
    """On a terminal, is there one line, redrawn with the seconds, and gone at the end?"""
    drawn = threading.Event()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            drawn.set()
            return super().write(text)

    stream = Terminal()
    with Progress(stream) as progress:
        progress.say("2 of 8 fetched", share=2 / 8)
        assert drawn.wait(10)

    first = re.escape("\r\033[KHeadrace: [#####...............] 2 of 8 fetched ")
    assert re.match(first + r"\(\d+ s\)", stream.getvalue())
    assert stream.getvalue().endswith("\r\033[K")
    assert "\n" not in stream.getvalue()


@pytest.mark.parametrize(("share", "filled"), [(-1, 0), (0, 0), (0.04, 0), (0.5, 10), (0.999, 19), (1, 20), (2, 20)])
def test_bar(share, filled):
    """Is a bar as long as what is done, and full only when all is?"""
    assert f"[{'#' * filled}{'.' * (20 - filled)}]" == bar(share)


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A project used from an environment the launchers did not make."""
    (tmp_path / "requirements").mkdir()
    monkeypatch.setattr(extras.sys, "prefix", str(tmp_path / "environment"))
    return tmp_path


def test_extra_in_a_persons_own_environment(foreign):
    """Is nothing installed into an environment that is not ours, and is the person told what to type instead?"""
    (foreign / "requirements/odd.lock").write_text("no-such-package==1 \\\n    --hash=sha256:00\npytest==1 \\\n")

    with pytest.raises(SetupError) as raised:
        ensure_extra("odd", root=foreign)

    assert raised.value.problem == "This command needs the extra 'odd', of which no-such-package is not installed."
    assert "pip install 'headrace[odd]'" in raised.value.advice


def test_several_extras_at_once(foreign):
    """Is everything that is missing told at once, so that one command mends it?"""
    for name in ("odd", "even"):
        (foreign / f"requirements/{name}.lock").write_text(f"no-such-{name}==1 \\\n    --hash=sha256:00\n")

    sentence = "'odd', of which no-such-odd and the extra 'even', of which no-such-even is"
    with pytest.raises(SetupError, match=sentence) as raised:
        ensure_extra("odd", "even", root=foreign)

    assert "pip install 'headrace[odd,even]'" in raised.value.advice


def test_whether_an_extra_is_there(foreign):
    """Can one ask for extras without having anything installed?"""
    (foreign / "requirements/odd.lock").write_text("no-such-package==1 \\\n    --hash=sha256:00\n")
    (foreign / "requirements/even.lock").write_text("pytest==1 \\\n    --hash=sha256:00\n")

    assert has_extra("even", root=foreign)
    assert not has_extra("even", "odd", root=foreign)


def test_extra_that_is_there_already(foreign):
    """Is an extra whose packages a person installed accepted as it is?"""
    (foreign / "requirements/odd.lock").write_text("pytest==1 \\\n    --hash=sha256:00\n")

    ensure_extra("odd", root=foreign)
