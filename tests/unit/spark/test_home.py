from pathlib import Path

import pyspark

from headrace.spark.home import quick_home


def test_a_home_without_the_archive(tmp_path):
    """Has the home all of Spark but the archive that its workers would import, the same one each time?"""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    home = quick_home(environment)

    assert home == quick_home(environment)
    assert (home / "jars").resolve() == Path(pyspark.__file__).parent / "jars"
    assert (home / "bin" / "spark-submit").exists()
    assert not (home / "python").exists()
    assert [home.name] == [one.name for one in (tmp_path / "headrace").iterdir()]


def test_a_home_that_is_given(tmp_path):
    """Is a home that the user names left alone, and none made where nothing can be written?"""
    file = tmp_path / "file"
    file.touch()

    assert quick_home({"SPARK_HOME": "/opt/spark"}) is None
    assert quick_home({"XDG_CACHE_HOME": str(file)}) is None
