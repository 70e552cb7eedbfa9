import pytest

from headrace.spark.session import LOCAL, SETTINGS, session_settings


def test_settings_of_a_local_session():
    """Has a session in one process as many shuffle partitions as cores, and stays on this machine?"""
    two, all_cores, one = (session_settings(master, {}, cores=8) for master in ("local[2]", "local[*]", "local"))

    assert ["2", "8", "1"] == [found["spark.sql.shuffle.partitions"] for found in (two, all_cores, one)]
    assert "127.0.0.1" == two["spark.driver.bindAddress"]
    assert SETTINGS.items() <= two.items()


def test_settings_on_a_cluster():
    """Does a session on a cluster keep the product's settings and no more?"""
    assert dict(SETTINGS) == session_settings("spark://master:7077", {})


def test_user_wins():
    """Does what the user sets count more?"""
    mine = {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "7"}

    assert mine.items() <= session_settings("local[2]", mine).items()


def test_tasks_are_tried_again():
    """Has a task more than one attempt where nobody says where Spark runs, with settings of all cores as before?"""
    assert LOCAL.startswith("local[*,")
    assert int(LOCAL.removeprefix("local[*,").removesuffix("]")) > 1
    assert "8" == session_settings(LOCAL, {}, cores=8)["spark.sql.shuffle.partitions"]


@pytest.mark.parametrize("given", ["", "-Xmx2g", "-XX:+UseZGC", "-Xlog:gc -XX:+UseSerialGC"])
def test_one_collector(monkeypatch, given):
    """Is the JVM told of a collector only where its user chose none? With two it does not start."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", given)
    options = session_settings("local[2]", {})["spark.driver.extraJavaOptions"]

    assert ("GC" not in given) == ("-XX:+UseParallelGC" in options.split())
