"""What the harness says when Apache Kafka cannot be had, and what it keeps when it can."""

import pytest

from headrace.testing import kafka_jars
from headrace.testing.kafka_jars import CompilationFailed, PeerUnavailable

FAKE = """#!/bin/sh
echo "$0 $*" >>{log}
{effect}
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A search path with only the programs a test puts there, and an empty cache; gives how to put one there."""
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))

    def put(name: str, effect: str = "") -> None:
        program = place / name
        program.write_text(FAKE.format(log=tmp_path / "calls", effect=effect))
        program.chmod(0o755)

    return put


@pytest.fixture
def calls(tmp_path):
    """The command lines of the programs that ran."""
    return lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def test_without_java(programs):
    """Is a machine without Java told so in one sentence?"""
    with pytest.raises(PeerUnavailable, match=r"no `java` found: Apache Kafka .* needs a JDK"):
        kafka_jars.kafka_jars()


def test_without_maven(programs):
    """Is a machine without Maven told so in one sentence?"""
    programs("java")

    with pytest.raises(PeerUnavailable, match="no `mvn` found"):
        kafka_jars.kafka_jars()


def test_fetched_once(programs, calls):
    """Is Maven asked once, and again after it failed?"""
    programs("java")
    programs("mvn", "exit 1")
    with pytest.raises(PeerUnavailable, match="`mvn` failed"):
        kafka_jars.kafka_jars()
    programs("mvn")

    directories = {kafka_jars.kafka_jars() for _ in range(3)}

    assert len(directories) == 1
    assert len(calls()) == 2
    assert all("dependency:copy-dependencies" in call for call in calls())


def test_sets_of_jars_are_fetched_apart(programs, calls):
    """Is a set of jars fetched only when it is asked for, and does a class path name each set once?"""
    programs("java")
    programs("mvn")

    alone = kafka_jars.classpath()
    fetched = len(calls())
    both = kafka_jars.classpath(extra=(kafka_jars.STREAMS_AND_CONNECT,))

    assert (1, 2) == (fetched, len(calls()))
    assert alone != both
    assert both.startswith(alone)


def test_compiled_once_per_content(programs, calls, tmp_path):
    """Are sources compiled once, again when they change, and is a wrong one an error and not a missing peer?"""
    for name in ("java", "mvn", "javac"):
        programs(name)
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "One.java").write_text("class One {}")

    first = [kafka_jars.compiled(sources) for _ in range(2)]
    (sources / "One.java").write_text("class One { int i; }")
    second = kafka_jars.compiled(sources)
    programs("javac", "exit 1")
    (sources / "One.java").write_text("class")
    with pytest.raises(CompilationFailed):
        kafka_jars.compiled(sources)

    assert first[0] == first[1] != second
    assert sum("javac" in call.split()[0] for call in calls()) == 3
