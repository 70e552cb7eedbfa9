"""The launchers' set-up, in a small copy of the project whose locks name packages that lie beside it."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell launchers are for POSIX systems")


def make_wheel(directory: Path, name: str, version: str) -> str:
    """A package with one module that knows its version; returns its line for a lock file."""
    path = directory / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f'VERSION = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


class Project:
    """A copy of the launchers and the command line, with locks of its own."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "a project"
        self.wheels = directory / "wheels"
        self.wheels.mkdir(parents=True)
        shutil.copytree(ROOT / "bin", self.root / "bin")
        for room in ("cli", "client", "settings", "model"):
            shutil.copytree(ROOT / "src/headrace" / room, self.root / "src/headrace" / room)
        shutil.copy(ROOT / "src/headrace/__init__.py", self.root / "src/headrace/")
        (self.root / "requirements").mkdir()
        self.lock("core", make_wheel(self.wheels, "tinycore", "1.0"))
        self.lock("client", make_wheel(self.wheels, "tinyclient", "1.0"))

    def lock(self, name: str, text: str) -> None:
        (self.root / "requirements" / f"{name}.lock").write_text(text)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    def environment(self, **changes: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON", "HEADRACE_"))}
        return {**kept, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), **changes}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "bin/headrace", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**environment),
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def version_of(self, module: str) -> str:
        code, out, err = self.run("python", "-c", f"import {module}; print({module}.VERSION)")

        assert (code, err.count("Headrace:")) == (0, err.count("\n")), err
        return out.strip()


@pytest.fixture
def project(tmp_path):
    """A project nobody has used yet."""
    return Project(tmp_path)


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A project that has been used once; tests leave it ready."""
    project = Project(tmp_path_factory.mktemp("used"))
    assert project.run("version")[0] == 0
    return project


def two_sentences(text: str) -> bool:
    """Whether a refusal is one sentence of what is wrong and one of what to do."""
    lines = text.strip().splitlines()
    return len(lines) == 2 and all(line.endswith(".") for line in lines)


@pytest.mark.slow
def test_first_use_sets_up_visibly_and_later_uses_are_silent(project):
    """Does the first use make .venv with progress on stderr, and the second start without a word?"""
    code, out, err = project.run("version")

    assert (code, out.startswith("Headrace ")) == (0, True)
    assert "Headrace: setting up .venv with Python" in err
    assert "Headrace: .venv is ready after" in err

    code, out, err = project.run("version")

    assert (code, out.startswith("Headrace "), err) == (0, True, "")


@pytest.mark.slow
def test_two_first_uses_at_once(project):
    """Do two launchers started at the same moment both work, with one set-up between them?"""
    pair = [project.start("version"), project.start("version")]
    results = [process.communicate(timeout=120) for process in pair]

    assert [process.returncode for process in pair] == [0, 0], results
    assert sum("setting up .venv with" in err for _, err in results) == 1


@pytest.mark.slow
def test_changed_lock_installs_again(used):
    """Is a changed lock noticed by the next use, and are its packages the ones then found?"""
    assert used.version_of("tinycore") == "1.0"

    used.lock("core", make_wheel(used.wheels, "tinycore", "2.0"))

    assert used.version_of("tinycore") == "2.0"


@pytest.mark.slow
def test_extra_is_installed_when_first_needed(project):
    """Is an extra absent until a command needs it, installed then, and not touched again afterwards?"""
    project.run("version")
    assert not (project.venv / "installed/client.lock").exists()

    code, _, err = project.run("python", "-c", "import tinyclient")

    assert (code, "installing 1 packages" in err) == (0, True)
    assert project.run("python", "-c", "import tinyclient") == (0, "", "")


@pytest.mark.slow
def test_interrupted_set_up_is_begun_again(used):
    """Is an environment whose installation was cut off midway made anew rather than trusted?"""
    (used.venv / "installed/core.unfinished").touch()
    leftover = used.venv / "leftover"
    leftover.touch()

    code, _, err = used.run("version")

    assert (code, "setting up .venv" in err, leftover.exists()) == (0, True, False)


@pytest.mark.slow
def test_no_network_says_so_and_leaves_nothing(project):
    """Without a network: exactly one sentence of what is wrong and one of what to do, exit 1, nothing half done?"""
    code, out, err = project.run("version", PIP_NO_INDEX="", PIP_FIND_LINKS="", PIP_INDEX_URL="http://127.0.0.1:9/")

    assert (code, out, project.venv.exists()) == (1, "", False)
    words = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("Headrace: "))
    assert two_sentences(words), err
    assert "could not reach the Python package index" in words


@pytest.mark.slow
def test_no_network_keeps_what_was_installed(used):
    """If a new lock cannot be fetched, is the old environment still what it was when the old lock comes back?"""
    before = (used.root / "requirements/core.lock").read_text()
    used.lock("core", make_wheel(used.root, "tinycore", "3.0"))  # not among the wheels pip is shown

    code, _, err = used.run("version")

    assert (code, "could not be installed" in err) == (1, True)
    used.lock("core", before)
    assert used.run("version")[::2] == (0, "")


@pytest.mark.slow
def test_wrong_hash_is_refused(project):
    """Is a package whose bytes are not the locked ones refused?"""
    line = make_wheel(project.wheels, "tinycore", "1.0")
    project.lock("core", line[:-3] + ("00" if line[-3:-1] != "00" else "11") + "\n")

    code, _, err = project.run("version")

    assert (code, project.venv.exists()) == (1, False)
    assert "could not be installed" in err


@pytest.mark.slow
def test_moved_project_still_works(used, tmp_path):
    """Can a project that is set up be moved, and be used through a link from elsewhere?"""
    link = tmp_path / "headrace"
    moved = used.root.with_name("elsewhere")
    used.root.rename(moved)
    link.symlink_to(moved / "bin/headrace")
    try:
        done = subprocess.run([link, "version"], capture_output=True, text=True, env=used.environment(), check=False)
    finally:
        moved.rename(used.root)

    assert (done.returncode, done.stderr) == (0, "")


def test_no_python_says_so(project, tmp_path):
    """Where there is no Python 3.11: exactly one sentence of what is wrong and one of what to do, and exit code 1?"""
    tools = tmp_path / "only these"
    tools.mkdir()
    for name in ("sh", "readlink", "cmp", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    code, out, err = project.run("version", PATH=str(tools))

    assert (code, out, project.venv.exists()) == (1, "", False)
    assert two_sentences(err), err
    assert "needs Python 3.11 or newer" in err


def test_python_without_venv_says_so(project, tmp_path):
    """Where Python lacks the venv module (Debian splits it off): is that what the sentence says?"""
    bare = tmp_path / "bare"
    bare.write_text('#!/bin/sh\ncase "$2" in *venv*) exit 1 ;; esac\nexit 0\n')
    bare.chmod(0o755)

    code, _, err = project.run("version", HEADRACE_PYTHON=str(bare))

    assert (code, two_sentences(err)) == (1, True), err
    assert "venv module" in err


def test_foreign_environment_is_not_touched(project):
    """Is a .venv that somebody else made left alone, with a sentence that says so?"""
    project.venv.mkdir()
    (project.venv / "theirs").touch()

    code, _, err = project.run("version")

    assert (code, two_sentences(err), (project.venv / "theirs").exists()) == (1, True, True), err


def test_named_python_must_be_one(project):
    """Is a HEADRACE_PYTHON that is no Python 3.11 refused by name?"""
    code, _, err = project.run("version", HEADRACE_PYTHON="/nonexistent/python")

    assert (code, two_sentences(err)) == (1, True), err
    assert "/nonexistent/python" in err
