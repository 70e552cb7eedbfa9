"""A Spark session for a pipeline, and the run that happens in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.pipeline.cluster_link import ClusterLink
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.display import Display
from headrace.pipeline.failure import sentence_of, text_of
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.runner import Query, Runner, spark_reports
from headrace.pipeline.runs import FAILED, Run, claimed, default_checkpoint, log_file, save_run, state_directory
from headrace.pipeline.schedule import AVAILABLE_NOW
from headrace.pipeline.settings import code_archive, spark_settings
from headrace.pipeline.spark_log import output_to, quiet_refusals
from headrace.pipeline.stop_request import StopRequest
from headrace.spark.session import LOCAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was asked on the command line, over what the file says."""

    brokers: str = ""
    properties: dict[str, str] | None = None
    """The client settings of the profile; those of the file win."""
    given: dict[str, str] | None = None
    """Those of --command-config, which win over the file's."""
    master: str = ""
    is_available_now: bool = False


def run_pipeline(pipeline: Pipeline, wishes: Wishes, display: Display, *, session: SparkSession | None = None) -> int:
    """Run a pipeline until it ends; the exit code. With `session` in that one, which is left as it is."""
    brokers = brokers_of(pipeline, wishes)
    pipeline = with_credentials(pipeline, wishes)
    master = wishes.master or (submitted_master() if is_submitted() else LOCAL)
    run = Run(name=pipeline.name, file=str(pipeline.file.absolute()), brokers=brokers, master=master)
    with claimed(pipeline.name), StopRequest(pipeline.name) as stop:
        save_run(run)
        link = ClusterLink(brokers, pipeline.properties)
        runner = Runner(pipeline, run, link=link, display=display, stop=stop, reports=spark_reports)
        try:
            code = _run(pipeline, wishes, runner, stop, display, session)
        except BaseException as error:
            reason = sentence_of(text_of(error)) if isinstance(error, Exception) else "It was interrupted."
            save_run(replace(runner.run, state=FAILED, reason=reason))
            raise
        finally:
            link.close()
        display.end({"pipeline": pipeline.name, "state": runner.run.state, "reason": runner.run.reason})
    if code:
        where = "" if session is not None or is_submitted() else f" Spark's log: {log_file(pipeline.name)}"
        raise PipelineFault(runner.run.reason, f"{runner.remedy} A next run goes on from here.{where}".strip()) from (
            runner.trace
        )
    return code


def _run(
    pipeline: Pipeline, wishes: Wishes, runner: Runner, stop: StopRequest, display: Display, given: SparkSession | None
) -> int:
    is_ending = wishes.is_available_now or all(sink.trigger.is_available_now for sink in pipeline.sinks.values())
    if not runner.await_cluster(is_patient=not is_ending):
        return runner.end_unstarted()
    spark = given or open_session(pipeline, runner.run.master, display)
    stop.listen()
    try:
        return runner.supervise(_starter(spark, pipeline, wishes, runner, display))
    finally:
        if given is None:
            spark.stop()


def _starter(
    spark: SparkSession, pipeline: Pipeline, wishes: Wishes, runner: Runner, display: Display
) -> Callable[[str], Query]:
    """What starts a query by its name; everything is built before the first starts."""
    from headrace.pipeline.frames import Frames  # noqa: PLC0415  Only now pyspark is sure to be there.
    from headrace.pipeline.queries import Queries  # noqa: PLC0415

    brokers = runner.run.brokers
    frames = Frames(spark, pipeline, brokers=brokers, starts=runner.group_starts())
    frames.build()
    queries = Queries(
        spark,
        pipeline,
        frames,
        brokers=brokers,
        checkpoint=checkpoint_of(pipeline),
        trigger=AVAILABLE_NOW if wishes.is_available_now else None,
        show=display.show,
    )
    return queries.start


def open_session(pipeline: Pipeline, master: str, display: Display) -> SparkSession:
    """Start Spark with what the pipeline needs of it."""
    from headrace.spark.compiled import prepare  # noqa: PLC0415  Takes seconds to load.
    from headrace.spark.session import spark_session  # noqa: PLC0415

    settings = spark_settings(pipeline)
    quiet_refusals()
    if is_submitted():
        return _furnished(spark_session(pipeline.name, master, settings | submitted_settings()), pipeline)
    log = log_file(pipeline.name)
    display.say(f"Starting Spark for {pipeline.name} ({master}); its log is {log}.")
    prepare()
    with output_to(log):
        spark = spark_session(pipeline.name, master, settings)
    return _furnished(spark, pipeline)


def _furnished(spark: SparkSession, pipeline: Pipeline) -> SparkSession:
    """The session with the pipeline's own code in it."""
    archive = code_archive(pipeline, state_directory())
    if archive is not None:
        spark.sparkContext.addPyFile(str(archive))
    return spark


def brokers_of(pipeline: Pipeline, wishes: Wishes) -> str:
    """Where the cluster is: the command line, the file, the profile, the environment."""
    found = wishes.brokers or pipeline.brokers or (wishes.properties or {}).get("bootstrap.servers")
    found = found or os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "")
    if not found:
        raise PipelineFault(
            "Nobody says where the cluster is.",
            "Write brokers = 'localhost:9092' below [pipeline], or give --bootstrap-server.",
        )
    return found


def with_credentials(pipeline: Pipeline, wishes: Wishes) -> Pipeline:
    """The pipeline with the settings of --command-config, and the profile's where that names the cluster."""
    is_of_profile = not (wishes.brokers or pipeline.brokers)
    found = {**((wishes.properties or {}) if is_of_profile else {}), **pipeline.properties, **(wishes.given or {})}
    return replace(pipeline, properties={name: text for name, text in found.items() if name != "bootstrap.servers"})


def checkpoint_of(pipeline: Pipeline) -> str:
    """Where the queries keep what they have done."""
    return pipeline.path(pipeline.checkpoint) if pipeline.checkpoint else default_checkpoint(pipeline.name)


def is_submitted() -> bool:
    """Whether spark-submit runs us, which has chosen master and settings already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_settings() -> dict[str, str]:
    """What spark-submit was told."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()  # noqa: SLF001  Its JVM knows them.
    return dict(SparkConf().getAll())


def submitted_master() -> str:
    """The master spark-submit was told, or its own default."""
    return submitted_settings().get("spark.master", LOCAL)
