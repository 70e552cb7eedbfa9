"""A Spark session with the settings that make small micro-batches fast, so that its user need not know them.

    spark = spark_session("trucks")
    spark.readStream.format("headrace")

`SETTINGS` can be handed to `spark-submit` too: they hold wherever Spark runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.spark.home import quick_home
from headrace.spark.java import find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    # Workers talk to the JVM through the file system: over TCP every small answer waits for an acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # Checkpoint files without checksum twins: a third of the time, and local disks rename atomically.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # transformWithState needs it, and state that outgrows the heap does too.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A batch then writes what it changed, not everything RocksDB has: batches end in two thirds of the time.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Rows go to Python and to our sink in fewer and larger pieces; those of wide rows are bounded by their bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What the product sets; whatever a user sets himself wins."""

LOCAL = "local[*,4]"
"""All cores, and as many attempts for a task as Spark gives it on a cluster: in one process it would be a single one,
and a Python worker that dies would end the query."""
_REGISTRY = "org.apache.spark.sql.execution.datasources.DataSourceManager"
_LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_COMPILER = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400"
    " -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
"""The JVM compiles a method once more, as well as it can, when it was called four times as often as by default. Much of
Spark is called just often enough in the first minutes and never pays for it: a twentieth of all CPU then."""
_COLLECTOR = "-XX:+UseParallelGC"
"""G1, the default, takes the buffers of a large batch for giants and looks through the whole heap because of them: 17
times in 45 seconds of a burst."""
_NUMPY_THREADS = "OPENBLAS_NUM_THREADS"
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def spark_session(name: str, master: str = LOCAL, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session; NoJava says in a sentence what is missing."""
    java = find_java()
    os.environ.setdefault("JAVA_HOME", str(java_home(java)))
    # Workers would run whatever `python3` is on the search path, which knows nothing of us.
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)
    if master.startswith("local"):
        # Otherwise Spark looks for an address that others could reach, and says so.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        home = quick_home()
        if home is not None:
            os.environ["SPARK_HOME"] = str(home)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - seconds, and only where a session is wanted

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in session_settings(master, conf or {}).items():
        builder = builder.config(key, value)
    with _lean_workers():
        session = builder.getOrCreate()
    register_source(session)
    return session


@contextmanager
def _lean_workers() -> Iterator[None]:
    """Have the JVM that is started here hand on that numpy needs no threads, unless its user has said something else.

    A process that plans a query lives for seconds, and numpy's threads, which it has no use for, are a third of what it
    takes to start one. Spark tells its workers the same by OMP_NUM_THREADS.
    """
    if _NUMPY_THREADS in os.environ:
        yield
        return
    os.environ[_NUMPY_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_NUMPY_THREADS]


def register_source(session: SparkSession) -> None:
    """Make the source known to a session, without warnings that it is known twice.

    Spark would find it by its name too, with a process that it gives ten seconds to start; on a busy machine it does
    not, and the session remembers that there is no such source. Every query that starts registers it again in a session
    of its own, so the logger that warns stays quiet.
    """
    from headrace.spark.source import HeadraceSource  # noqa: PLC0415

    jvm = session._jvm  # noqa: SLF001  pyspark itself sets the level of all loggers, but not of one alone.
    assert jvm is not None, "the session runs in a JVM of ours"
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_REGISTRY, log4j.Level.ERROR)
    session.dataSource.register(HeadraceSource)


def session_settings(master: str, conf: Mapping[str, str], *, cores: int | None = None) -> dict[str, str]:
    """What a session on this master is started with."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if local is None:
        return {**SETTINGS, **conf}
    count = local[1] or "1"
    tasks = str(cores or os.cpu_count() or 1) if count == "*" else count
    java = {"spark.driver.extraJavaOptions": _java_options(os.environ)}
    return {**SETTINGS, **_LOCAL, **java, "spark.sql.shuffle.partitions": tasks, **conf}


def _java_options(environ: Mapping[str, str]) -> str:
    """What the JVM is told; nothing of its collector where its user chose one, as it would not start with two."""
    chosen = any("GC" in environ.get(name, "") for name in _JAVA_OPTIONS)
    return _COMPILER if chosen else f"{_COMPILER} {_COLLECTOR}"
