"""Apache Kafka's jars, fetched once by Maven into a cache, and our small Java programs compiled against them.

Tests and benchmarks compare Headrace with the real thing, so they need Kafka's broker, tools and clients. Nothing of
it is kept in the repository: the coordinates below are resolved by the user's own Maven, and everything that can be
missing (Java, Maven, a network) ends in one PeerUnavailable with one sentence for the person who reads it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

KAFKA_VERSION: Final = "4.3.1"
MAVEN_TIMEOUT_S: Final = 600
JAVAC_TIMEOUT_S: Final = 120

Coordinates = tuple[tuple[str, str, str], ...]

# Each set is fetched when somebody first asks for it; the others come after PEER on a class path.
PEER: Final = "kafka"
STREAMS_AND_CONNECT: Final = "kafka-streams"
_COORDINATES: Final = {
    PEER: (
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        ("org.apache.kafka", "kafka-server", KAFKA_VERSION),
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
    STREAMS_AND_CONNECT: (
        ("org.apache.kafka", "kafka-streams", KAFKA_VERSION),
        ("org.apache.kafka", "connect-file", KAFKA_VERSION),
    ),
}
# The last file written: a directory without it is a copy that was interrupted.
_COMPLETE: Final = ".complete"
_NOTHING_ELSE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


class PeerUnavailable(Exception):
    """Apache Kafka cannot be had on this machine; the message says what is missing."""


class CompilationFailed(Exception):
    """A Java program of ours is wrong; never a reason to do without it."""


def cache_directory() -> Path:
    """Where downloaded and compiled things are kept: HEADRACE_CACHE, the checkout's .cache, or the user's cache."""
    if chosen := os.environ.get("HEADRACE_CACHE"):
        return Path(chosen).absolute()
    project = Path(__file__).resolve().parents[3]
    if (project / "bench" / "run").exists():
        return project / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def java_command(name: str = "java") -> str:
    """The path of `java` or `javac`, from JAVA_HOME or the search path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise PeerUnavailable(f"no `{name}` found: Apache Kafka {KAFKA_VERSION} needs a JDK of version 17 or later")
    return found


def kafka_jars(which: str = PEER) -> Path:
    """The directory of a set of Kafka's jars, filled by Maven the first time it is asked for."""
    return fetched(f"{which}-{KAFKA_VERSION}", _COORDINATES[which])


def fetched(name: str, coordinates: Coordinates, *, alone: bool = False) -> Path:
    """The directory of that name in the cache, filled by Maven the first time; `alone` leaves out what they need."""
    java_command()
    directory = cache_directory() / name
    with _locked(directory):
        if not (directory / _COMPLETE).exists():
            _copy_dependencies(directory, _pom(coordinates, _NOTHING_ELSE if alone else ""))
            (directory / _COMPLETE).touch()
    return directory


def classpath(*first: Path, extra: tuple[str, ...] = ()) -> str:
    """A Java class path: the given directories, then Kafka's jars and the extra sets of them."""
    return os.pathsep.join([*map(str, first), *(str(kafka_jars(which) / "*") for which in (PEER, *extra))])


def compiled(*sources: Path, extra: tuple[str, ...] = ()) -> Path:
    """The directory of the classes of all `.java` files in the given directories, compiled once per content."""
    files = sorted(file for directory in sources for file in directory.glob("*.java"))
    digest = hashlib.sha256(KAFKA_VERSION.encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    target = cache_directory() / f"java-{digest.hexdigest()[:16]}"
    with _locked(target):
        if not (target / _COMPLETE).exists():
            jars = classpath(extra=extra)
            command = [java_command("javac"), "-proc:none", "-Xlint:all,-processing", "-cp", jars]
            _run([*command, "-d", str(target), *map(str, files)], JAVAC_TIMEOUT_S, CompilationFailed)
            (target / _COMPLETE).touch()
    return target


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a cache entry, so that two sessions started at once fill it once."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy_dependencies(directory: Path, project: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PeerUnavailable(f"no `mvn` found: Apache Kafka {KAFKA_VERSION} is fetched by Maven coordinates")
    with tempfile.TemporaryDirectory(prefix="headrace-pom-") as place:
        pom = Path(place) / "pom.xml"
        pom.write_text(project)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}", "-DincludeScope=runtime"]
        _run([maven, "-q", "-B", "-f", str(pom), *goal], MAVEN_TIMEOUT_S, PeerUnavailable)


def _pom(coordinates: Coordinates, exclusions: str) -> str:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"{exclusions}</dependency>"
        for group, name, version in coordinates
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>headrace</groupId><artifactId>peer</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _run(command: list[str], timeout_s: float, failure: type[Exception]) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise failure(f"`{name}` did not finish within {timeout_s:.0f} s") from None
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise failure(f"`{name}` failed: " + " / ".join(lines[:3]))
