"""What a pipeline asks of Spark."""

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import headrace
from headrace.pipeline.file import parse_pipeline
from headrace.pipeline.settings import code_archive, spark_settings

TEXT = """\
[pipeline]
name = "copy"
[pipeline.spark]
"spark.sql.session.timeZone" = "Europe/Berlin"
[source.lines]
topic = "lines"
format = "string"
[transform.loud]
python = "loud:shout"
inputs = "lines"
[sink.out]
from = "loud"
topic = "out"
"""


def pipeline(place):
    return parse_pipeline(TEXT, file=place / "copy.toml")


def test_workers_find_the_functions(tmp_path):
    """Do workers look beside the file, for Headrace, and where the driver was told to, and does the file's word win?"""
    settings = spark_settings(pipeline(tmp_path), {"PYTHONPATH": f"here{os.pathsep}there"})
    places = settings["spark.executorEnv.PYTHONPATH"].split(os.pathsep)

    assert places == [str(tmp_path), str(Path(headrace.__file__).parents[1]), "here", "there"]
    assert settings["spark.sql.session.timeZone"] == "Europe/Berlin"


def test_code_is_sent_along(tmp_path):
    """Does the archive hold the Python files beside the file, packages too, and nothing hidden?"""
    for name in ("loud.py", "words/__init__.py", "words/long.py", ".venv/x.py", "__pycache__/y.py", "notes.txt"):
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    archive = code_archive(pipeline(tmp_path / "p"), tmp_path)

    assert zipfile.ZipFile(archive).namelist() == ["loud.py", "words/__init__.py", "words/long.py"]


def test_sql_needs_no_code(tmp_path):
    """Is nothing sent where no transform is Python?"""
    assert code_archive(replace(pipeline(tmp_path), transforms={}), tmp_path) is None
