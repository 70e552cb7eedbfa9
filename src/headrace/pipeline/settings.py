"""What a pipeline asks of Spark beside what every session of ours has."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import headrace
from headrace.pipeline.declaration import Pipeline

CODE_BYTES_MAX = 16 * 1024 * 1024
"""Python files beside a pipeline file that are sent to the workers; more than this is no source code."""

STATE_COUNTING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
"""Whether Spark counts the rows of its state, for which it asks RocksDB once more for every row that changes."""

TIME_ZONE = "UTC"
"""Days and hours of partitions mean the same on every machine."""


def spark_settings(pipeline: Pipeline, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of the session; what the file says comes last and wins."""
    return {
        "spark.sql.session.timeZone": TIME_ZONE,
        # Workers find the functions of the file and Headrace itself where the driver does.
        "spark.executorEnv.PYTHONPATH": python_path(pipeline, inherited.get("PYTHONPATH", "")),
        **pipeline.spark,
    }


def python_path(pipeline: Pipeline, inherited: str = "") -> str:
    """Where a worker on this machine, or on one that has the same directories, looks for modules."""
    places = [str(pipeline.directory.absolute()), str(Path(headrace.__file__).parents[1]), *inherited.split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(place for place in places if place))


def code_archive(pipeline: Pipeline, directory: Path) -> Path | None:
    """A zip of the Python files beside the pipeline file, for workers on machines that do not have them."""
    if not any(transform.python for transform in pipeline.transforms.values()):
        return None
    place = pipeline.directory.absolute()
    files = [path for path in sorted(place.rglob("*.py")) if _is_code(path.relative_to(place))]
    if sum(path.stat().st_size for path in files) > CODE_BYTES_MAX:
        return None
    archive = directory / f"{pipeline.name}.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in files:
            target.write(path, path.relative_to(place))
    return archive


def _is_code(path: Path) -> bool:
    return not any(part.startswith((".", "_")) and part != "__init__.py" for part in path.parts)
