"""Spark runs on a JVM: find one that is new enough, or say in one sentence what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.client.fault import ClientFault

JAVA_VERSION_MIN = 17
_USUAL_PLACES = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines")
_ANSWER_S = 30.0
_REMEDY = (
    f"Install Java {JAVA_VERSION_MIN} or later (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME to one."
)


class NoJava(ClientFault):
    """There is no JVM that Spark could run on."""


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """The `java` Spark should run on: JAVA_HOME's, the search path's, or one where they usually are."""
    found = [(path, _version(path)) for path in _candidates(os.environ if environment is None else environment)]
    for path, version in found:
        if version >= JAVA_VERSION_MIN:
            return path
    if found:
        path, version = found[0]
        raise NoJava(f"Spark needs Java {JAVA_VERSION_MIN} or later, but {path} is Java {version}", _REMEDY)
    raise NoJava("Spark needs Java, and there is none", _REMEDY)


def java_home(java: Path) -> Path:
    """The directory that JAVA_HOME means."""
    return java.resolve().parent.parent


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    by_home = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    by_path = shutil.which("java", path=environment.get("PATH", ""))
    yield from (Path(found) for found in (by_home, by_path) if found)
    for place in _USUAL_PLACES:
        yield from sorted(Path(place).glob("*/bin/java"), reverse=True)
        yield from sorted(Path(place).glob("*/Contents/Home/bin/java"), reverse=True)


def _version(java: Path) -> int:
    """The major version a JVM says it has; 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(match[1]) if match else 0
