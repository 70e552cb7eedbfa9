import pytest

from headrace.spark import java
from headrace.spark.java import NoJava, find_java, java_home


def fake_java(directory, version):
    """A program that says it is a JVM."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch):
    monkeypatch.setattr(java, "_USUAL_PLACES", ())


def test_java_home_first(tmp_path):
    """Is JAVA_HOME's Java taken before the search path's?"""
    home, path = fake_java(tmp_path / "home", "17.0.9"), fake_java(tmp_path / "path", "21.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}

    assert home == find_java(environment)
    assert tmp_path / "home" == java_home(home)


def test_new_enough(tmp_path):
    """Is a Java that is too old passed over, old numbers too?"""
    fake_java(tmp_path / "home", "1.8.0_392")
    path = fake_java(tmp_path / "path", "21")

    assert path == find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})


def test_none(tmp_path):
    """Is it said in a sentence what to install if there is no Java, or only an old one?"""
    with pytest.raises(NoJava, match=r"Spark needs Java, and there is none. Install Java 17"):
        find_java({"PATH": str(tmp_path)})
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava, match=f"Spark needs Java 17 or later, but {old} is Java 11. Install Java 17"):
        find_java({"PATH": str(old.parent)})


def test_where_it_usually_is(tmp_path, monkeypatch):
    """Is a Java found that nobody points to?"""
    monkeypatch.setattr(java, "_USUAL_PLACES", (str(tmp_path),))
    path = fake_java(tmp_path / "java-17", "17")

    assert path == find_java({"PATH": ""})
