"""The launchers for Windows, run by the command interpreter of Wine: not Windows, but the same language."""

import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ensurepip = pytest.importorskip("ensurepip")

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = "pip/_vendor/distlib/t64.exe"
DEADLINE_S = 120
STUB = "@echo off\r\necho got %*\r\necho as %HEADRACE_INVOKED_AS%\r\nexit 7\r\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("wine") is None, reason="wine, which runs .bat files here, is not there"),
]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A Windows of the tests' own."""
    return tmp_path_factory.mktemp("wine")


@pytest.fixture
def place(tmp_path, prefix):
    """A project directory with the launchers and nothing else."""
    found = Place(tmp_path / "the project", prefix)
    shutil.copytree(ROOT / "bin/windows", found.root / "bin/windows")
    return found


class Place:
    """A project directory as Windows sees it."""

    def __init__(self, root, prefix):
        self.root, self._prefix = root, prefix

    def set_up(self):
        """Put a program in the place of Python that says how it was called and ends with 7."""
        stub = self.root.parent / "stub.bat"
        stub.write_text(STUB, newline="")
        (self.root / ".venv/Scripts").mkdir(parents=True)
        # What pip puts before a script starts whatever follows it; here, another batch file.
        shebang = f"#!C:\\windows\\system32\\cmd.exe /c {windows_path(stub)}\r\n"
        (self.root / ".venv/Scripts/python.exe").write_bytes(launcher() + shebang.encode() + archive())
        for directory in ("requirements", ".venv/installed"):
            (self.root / directory).mkdir(parents=True)
            (self.root / directory / "core.lock").write_text("locked\n")

    def types(self, line):
        """Type a line at the prompt; gives the exit code and both streams."""
        (self.root / "typed.bat").write_text(f"@echo off\r\n{line}\r\n", newline="")
        environment = {**os.environ, "WINEPREFIX": str(self._prefix), "WINEDEBUG": "-all"}
        for name in ("HEADRACE_PYTHON", "DISPLAY"):
            environment.pop(name, None)
        done = subprocess.run(
            ["wine", "cmd", "/c", "typed.bat"],
            cwd=self.root, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def windows_path(path):
    """A path as it is called in Wine."""
    return "Z:" + str(path).replace("/", "\\")


def launcher():
    """The program for Windows that comes with Python's own pip."""
    for wheel in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            return packed.read(LAUNCHER)
    pytest.skip("this Python does not bring pip's launchers for Windows")


def archive():
    """What a launcher wants to find behind itself."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("__main__.py", "")
    return content.getvalue()


@pytest.mark.parametrize(
    "typed",
    [
        "--list",
        '--topic "a topic" --config retention.ms=1000,x',
        '--add-config "k=[a,b]" "one&two" bang! "C:\\some dir\\file"',
    ],
)
def test_arguments_and_exit_codes_go_through(place, typed):
    """Does a tool get its arguments as they are typed, know its name, and hand its exit code on?"""
    place.set_up()
    code, out, _ = place.types(f"bin\\windows\\kafka-topics.bat {typed}")

    assert [f"-P -m headrace.cli kafka-topics {typed}", windows_path(place.root / "bin/windows/kafka-topics.bat")] == [
        out[0].partition('python.exe" ')[2],
        out[1].removeprefix("as "),
    ]
    assert 7 == code


def test_the_umbrella_command(place):
    """Does headrace.bat run the umbrella command, without a tool's name?"""
    place.set_up()
    code, out, _ = place.types("bin\\windows\\headrace.bat start -n 3")

    assert (7, "-P -m headrace.cli start -n 3") == (code, out[0].partition('python.exe" ')[2])


def test_without_python(place):
    """Where there is no Python, is that said, with what to do and exit code 1?"""
    code, out, err = place.types("bin\\windows\\kafka-topics.bat --list")

    assert (1, []) == (code, out)
    assert [
        "Headrace needs Python 3.11 or newer, and no python on your PATH is one.",
        "Install Python 3.11 or newer, or set HEADRACE_PYTHON to its path.",
    ] == [line.rstrip() for line in err[-2:]], "Wine has words of its own before"
