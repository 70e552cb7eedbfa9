"""A copy of the project as a clone would be, and a network of its own in which port 9092 is free."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from headrace.testing.ports import free_port

ROOT = Path(__file__).parents[2]
PARTS = ("bin", "config", "examples", "requirements", "src")
# Brings the loopback interface up, says so, and keeps the namespace until its input ends.
_HOLD = """
import fcntl, socket, struct, sys
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
    request = struct.pack("16sh14x", b"lo", 0)
    flags = struct.unpack("16sh14x", fcntl.ioctl(handle, SIOCGIFFLAGS, request))[1]
    fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
print("up", flush=True)
sys.stdin.read()
"""


def copy_project(directory: Path) -> Path:
    """The project's own files, without what was made or stored beside them."""
    copy = directory / "headrace"
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def clean_environment(directory: Path) -> dict[str, str]:
    """The environment of somebody who has never heard of Headrace."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "HEADRACE_", "LOG_DIR", "XDG_")) and key != "NO_COLOR"
    }
    return {
        **kept,
        "HEADRACE_HOME": str(directory / "home"),
        "XDG_STATE_HOME": str(directory / "state"),
        "TERM": "xterm",
    }


class Network:
    """A network in which nobody listens yet: a namespace, or where there is none other ports in the same words."""

    def __init__(self) -> None:
        self._holder = _namespace()
        self._ports = {} if self._holder else {"9092": str(free_port()), "9093": str(free_port())}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._holder:
            self._holder.communicate("", timeout=30)

    @property
    def is_real(self) -> bool:
        """Whether 9092 is 9092."""
        return self._holder is not None

    def words(self, text: str) -> str:
        """A text with the ports of this network."""
        return re.sub(r"\b909[23]\b", lambda found: self._ports.get(found[0], found[0]), text)

    def command(self, line: str) -> list[str]:
        """A line of shell, run in this network."""
        inside = ["nsenter", "-t", str(self._holder.pid), "-U", "--preserve-credentials", "-n"] if self._holder else []
        return [*inside, "sh", "-c", f"exec {self.words(line)}"]


def _namespace() -> subprocess.Popen[str] | None:
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        return None
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", _HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if holder.stdout.readline() == "up\n":
        return holder
    holder.communicate("", timeout=30)
    return None
