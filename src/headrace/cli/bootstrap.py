"""Makes the virtual environment a launcher runs in, and keeps it in step with its lock files.

An environment made here holds a directory `installed/` with a copy of every lock that is installed in it. So "is it
ready?" is one file comparison, which the shell launchers make themselves, and a changed lock is seen at once. While pip
works, `installed/<lock>.unfinished` lies beside it: if that is found later, the set-up was interrupted midway and the
environment is made anew. Set-ups of one project exclude each other by a file lock that dies with its owner.

Runs under the machine's own Python before any package is there: standard library only.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.cli.file_lock import try_lock
from headrace.cli.progress import Progress
from headrace.cli.setup_error import SetupError as SetupError

_WAIT_SECONDS_MAX = 900
"""How long to wait for another set-up: longer than any install takes, short enough to be told about a stuck one."""

_OUTPUT_LINES_MAX = 500
"""How much of pip's output is kept to explain a failure."""

_NETWORK_SIGNS = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "SSLError",
    "Connection aborted",
    "Connection broken",
    "Connection refused",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "There was a problem confirming the ssl certificate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment that belongs to a project directory."""

    root: Path
    path: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        if sys.platform == "win32":
            return self.path / "Scripts" / "python.exe"
        return self.path / "bin" / "python"

    @property
    def stamps(self) -> Path:
        """Where the copies of the installed locks are."""
        return self.path / "installed"

    def lock_file(self, name: str) -> Path:
        """The lock file that says what `name` consists of."""
        return self.root / "requirements" / f"{name}.lock"

    def has(self, name: str) -> bool:
        """Whether the lock `name`, as it is now, is fully installed."""
        stamp = self.stamps / f"{name}.lock"
        if not (self.python.exists() and stamp.exists()) or self.unfinished(name).exists():
            return False
        return filecmp.cmp(self.lock_file(name), stamp, shallow=False)

    def unfinished(self, name: str) -> Path:
        """Lies there while pip installs `name`, and afterwards only if it was interrupted."""
        return self.stamps / f"{name}.unfinished"

    def whole(self) -> bool:
        """Whether what is there can be built upon: made to its end, and no installation interrupted."""
        made = self.python.exists() and (self.stamps / "interpreter").exists()
        return made and not any(self.stamps.glob("*.unfinished"))


def ensure_installed(environment: Environment, name: str, *, interpreter: str = "") -> None:
    """Make sure the environment exists and holds exactly what the lock `name` says.

    `interpreter` is how the person named the Python to use; a different name than last time makes the environment anew.
    """
    if not environment.lock_file(name).is_file():
        raise SetupError(
            f"There is no lock file requirements/{name}.lock, so '{name}' cannot be installed.",
            "Restore it from version control, or make it with tools/lock.sh.",
        )
    try:
        with Progress() as progress, _exclusive(environment, progress):
            if environment.has(name) and _made_with(environment, interpreter):
                return
            _install(environment, name, interpreter, progress)
            ready = f"{environment.path.name} is ready after {progress.seconds} s"
    except PermissionError as error:
        raise SetupError(
            f"Headrace may not write to {error.filename}, where it keeps its Python packages.",
            "Run it once as a user who may, or copy the project to a directory of your own.",
        ) from error
    except OSError as error:
        raise SetupError(
            f"Headrace could not set up {environment.path}: {error}.",
            "Make room or repair the disk, then run the same command again.",
        ) from error
    print(f"Headrace: {ready}", file=sys.stderr)


def _made_with(environment: Environment, interpreter: str) -> bool:
    record = environment.stamps / "interpreter"
    return not interpreter or (record.exists() and record.read_text().strip() == interpreter)


@contextmanager
def _exclusive(environment: Environment, progress: Progress) -> Iterator[None]:
    """Only one set-up of this environment at a time; the others wait for it and then find the work done."""
    directory = environment.root / ".cache"
    directory.mkdir(exist_ok=True)
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    with (directory / f"{environment.path.name.lstrip('.')}.lock").open("a") as file:
        waiting = False
        while not try_lock(file):
            if not waiting:
                progress.say(f"waiting for another command that is setting up {environment.path.name}")
                waiting = True
            if time.monotonic() > deadline:
                raise SetupError(
                    f"Another command has been setting up {environment.path} for {_WAIT_SECONDS_MAX // 60} minutes.",
                    "End it and run this command again.",
                )
            time.sleep(0.1)
        yield


def _install(environment: Environment, name: str, interpreter: str, progress: Progress) -> None:
    if environment.path.exists() and not environment.stamps.is_dir():
        raise SetupError(
            f"{environment.path} exists already and was not made by Headrace.",
            "Move it away and run the same command again.",
        )
    anew = not (environment.whole() and _made_with(environment, interpreter))
    if anew and environment.path == Path(sys.prefix):
        shutil.rmtree(environment.stamps)
        environment.stamps.mkdir()
        raise SetupError(
            f"An earlier set-up of {environment.path} was interrupted, and it cannot be mended while it is in use.",
            "Run the same command again: it is then made anew.",
        )
    try:
        if anew:
            _create(environment, interpreter, progress)
        _run_pip(environment, name, progress)
    except (SetupError, KeyboardInterrupt):
        if anew:
            shutil.rmtree(environment.path, ignore_errors=True)
        raise
    _write(environment.stamps / f"{name}.lock", environment.lock_file(name).read_text())
    environment.unfinished(name).unlink()


def _create(environment: Environment, interpreter: str, progress: Progress) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    progress.say(f"setting up {environment.path.name} with Python {version} (this happens once)")
    if environment.path.exists():
        shutil.rmtree(environment.path)
    environment.stamps.mkdir(parents=True)
    # The interpreter's real name: a `python3` that later becomes another version would leave an empty environment.
    base = os.path.realpath(sys.executable)
    made = subprocess.run(
        [base, "-I", "-m", "venv", str(environment.path)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        reason = (made.stderr or made.stdout).strip().splitlines() or ["no reason given"]
        raise SetupError(
            f"Python {version} could not make a virtual environment: {reason[-1].rstrip('.')}.",
            "Install Python's venv module (on Debian and Ubuntu: apt install python3-venv), or set HEADRACE_PYTHON.",
        )
    _link_sources(environment)
    _write(environment.stamps / "interpreter", interpreter + "\n")


def _link_sources(environment: Environment) -> None:
    """Let the environment find the package in src/, by a relative path so that the project may be moved."""
    base = str(environment.path)
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": base, "platbase": base}))
    (packages / "headrace.pth").write_text(os.path.relpath(environment.root / "src", packages) + "\n")


def _run_pip(environment: Environment, name: str, progress: Progress) -> None:
    lock = environment.lock_file(name)
    count = sum("==" in line for line in lock.read_text().splitlines())
    progress.say(f"fetching and installing {count} packages into {environment.path.name}")
    command = [str(environment.python), "-I", "-u", "-m", "pip", "install", "--require-hashes", "-r", str(lock)]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
    output: deque[str] = deque(maxlen=_OUTPUT_LINES_MAX)
    changing = False
    environment.unfinished(name).touch()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            output.append(line)
            changing = changing or line.startswith("Installing collected packages")
            step = line.split()
            if len(step) > 1 and step[0] in {"Collecting", "Downloading", "Building"}:
                progress.detail(f"setting up {environment.path.name}: {step[0].lower()} {step[1]}")
    if pip.returncode != 0:
        # pip changes nothing until it has fetched everything, so until then the environment is what it was.
        if not changing:
            environment.unfinished(name).unlink()
        log = environment.root / ".cache" / "setup.log"
        log.write_text("".join(output))
        raise explain(output, log.relative_to(environment.root))


def explain(output: deque[str], log: Path) -> SetupError:
    """Why pip failed, for a person: no network, or pip's own last word."""
    if any(sign in line for line in output for sign in _NETWORK_SIGNS):
        return SetupError(
            "Headrace could not reach the Python package index to fetch the packages it needs.",
            "Connect to the network (or point pip to a mirror with PIP_INDEX_URL) and run the same command again.",
        )
    errors = [line.removeprefix("ERROR:").strip() for line in output if line.startswith("ERROR:")]
    reason = errors[-1].rstrip(".") if errors else "pip gave no reason"
    return SetupError(
        f"Headrace's packages could not be installed: {reason}.",
        f"The whole output is in {log}; mend the cause and run the same command again.",
    )


def _write(path: Path, text: str) -> None:
    """Write a stamp so that it is either whole or absent."""
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def main(arguments: list[str]) -> int:
    """What the launchers call: bootstrap ROOT ENVIRONMENT LOCK [INTERPRETER]."""
    root, environment, name, *interpreter = arguments
    try:
        ensure_installed(
            Environment(root=Path(root), path=Path(root) / environment), name, interpreter="".join(interpreter)
        )
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Headrace: set-up interrupted; the next command begins it again.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
