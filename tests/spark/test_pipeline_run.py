"""Pipelines on a real Spark and a real broker."""

import io
import json
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from headrace.pipeline import runs
from headrace.pipeline.display import LineDisplay
from headrace.pipeline.fault import FileFault, PipelineFault
from headrace.pipeline.file import load_pipeline
from headrace.pipeline.plans import plans_of
from headrace.pipeline.session import Wishes, run_pipeline
from headrace.testing.cluster import Cluster
from spark.topics import Topics

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
_NUMBERS = count()

FLEET = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
dead_letter = "NAME_bad"

[source.gps]
topic = "NAME_gps"
schema = "truck_id string, lat double, ts timestamp, seq bigint"
watermark = { column = "ts", delay = "2 minutes" }
deduplicate = ["truck_id", "seq"]
require = "lat BETWEEN -90 AND 90"
max_records_per_batch = 1000

[transform.north]
python = "MODULE:northern"
inputs = ["gps"]
options = { limit = 50 }

[transform.minutes]
sql = '''
SELECT window.start AS minute, truck_id, count(*) AS reports
FROM gps
GROUP BY window(ts, '1 minute'), truck_id'''

[sink.north]
from = "north"
topic = "NAME_north"
key = "truck_id"
exactly_once = true

[sink.lake]
from = "minutes"
parquet = "lake"
partition_by = ["hour(minute)"]
"""
MODULE = """\
from pyspark.sql import functions as F

@F.udf("string")
def shout(text):
    return text.upper()

def northern(inputs, spark, options):
    return inputs["gps"].where(F.col("lat") > options["limit"]).withColumn("loud", shout("truck_id"))
"""


@pytest.fixture(scope="module")
def cluster():
    """A broker that creates no topics on its own, as many do not."""
    with Cluster({"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}) as found:
        yield found


@pytest.fixture
def topics(cluster):
    """Creates topics and sends records."""
    with Topics(cluster.bootstrap) as found:
        yield found


@pytest.fixture
def pipeline(spark, cluster, tmp_path):
    """A pipeline file with names of its own, and how to run it."""
    return Fixture(spark, cluster.bootstrap, tmp_path, f"fleet{next(_NUMBERS)}")


class Fixture:
    def __init__(self, spark, bootstrap, place, name):
        self.spark = spark
        self.bootstrap = bootstrap
        self.place = place
        self.name = name
        self.output = io.StringIO()
        self.module = MODULE

    def write(self, text=FLEET):
        (self.place / f"{self.name}_code.py").write_text(self.module)
        path = self.place / "fleet.toml"
        path.write_text(text.replace("NAME", self.name).replace("MODULE", f"{self.name}_code"))
        return load_pipeline(path)

    def run(self, text=FLEET, **wishes):
        return run_pipeline(
            self.write(text),
            Wishes(brokers=self.bootstrap, is_available_now=True, **wishes),
            LineDisplay(self.output),
            session=self.spark,
        )

    def read(self, suffix):
        """Every committed record of a topic of ours."""
        frame = self.spark.read.format("headrace").option("kafka.bootstrap.servers", self.bootstrap)
        return frame.option("subscribe", self.name + suffix).option("includeHeaders", "true").load().collect()


def report(truck, seq, *, seconds=0, lat=60.0):
    return json.dumps(
        {"truck_id": truck, "lat": lat, "ts": (NOON + timedelta(seconds=seconds)).isoformat(), "seq": seq}
    ).encode()


def test_a_fleet_from_topic_to_topic_and_lake(pipeline, topics):
    """R32: is every good record there once, each bad one a dead letter with its reason, and does a restart go on?"""
    gps = topics.create(f"{pipeline.name}_gps", 2)
    good = [report(f"T{n % 3}", n, seconds=n) for n in range(60)]
    topics.send(gps, [*good, good[0], b"no json", report("T9", 1, lat=91.0), report("S1", 1, lat=10.0)])
    assert pipeline.run() == 0

    north = pipeline.read("_north")
    assert sorted(json.loads(one.value)["seq"] for one in north) == list(range(60))
    assert {one.key for one in north} == {b"T0", b"T1", b"T2"}
    assert min((json.loads(one.value) for one in north), key=lambda row: row["seq"]) == {
        "truck_id": "T0", "lat": 60.0, "ts": "2026-11-15T12:00:00.000Z", "seq": 0, "loud": "T0"
    }  # fmt: skip
    letters = {bytes(one.value): {h.key: bytes(h.value).decode() for h in one.headers} for one in pipeline.read("_bad")}
    assert set(letters) == {b"no json", report("T9", 1, lat=91.0)}
    assert letters[b"no json"]["__error.reason"].startswith("unreadable: ")
    assert letters[report("T9", 1, lat=91.0)] == {
        "__error.reason": "refused: lat BETWEEN -90 AND 90",
        "__error.pipeline": pipeline.name,
        "__error.topic": gps,
        "__error.partition": "0",
        "__error.offset": "62",
    }
    assert topics.committed(f"{pipeline.name}-gps") == _ends(topics, gps)

    more = [report("T0", 100, seconds=600), report("T1", 1, seconds=1), report("T1", 101, seconds=4000)]
    topics.send(gps, more)
    assert pipeline.run() == 0
    topics.send(gps, [report("T2", 5, seconds=5)])
    assert pipeline.run() == 0

    # What had come before came again as T1's first report and T2's fifth: too late, and counted.
    assert sorted(json.loads(one.value)["seq"] for one in pipeline.read("_north")) == [*range(60), 100, 101]
    late = {one["query"]: one["lateRows"] for one in runs.find_run(pipeline.name).queries}
    assert (late["north"], runs.find_run(pipeline.name).state) == (1, "finished")
    lake = pipeline.spark.read.parquet(str(pipeline.place / "lake"))
    assert sum(row.reports for row in lake.collect()) == 62  # 60, the southern one, and what 4000 s have closed.
    assert {row.hour for row in lake.collect()} == {"2026-11-15-12"}
    progress = [json.loads(one.value) for one in _progress(pipeline) if one.key.decode().startswith(pipeline.name)]
    assert sum(one["rows"] for one in progress if one["query"] == "north") == 68


def _ends(topics, name):
    from headrace.client.records import TopicPartition

    return {TopicPartition(name, number): end for number, end in topics.ends(name, 2).items()}


def _progress(pipeline):
    frame = pipeline.spark.read.format("headrace").option("kafka.bootstrap.servers", pipeline.bootstrap)
    return frame.option("subscribe", "__pipeline_progress").load().collect()


@pytest.mark.parametrize(
    ("expected", "old", "new"),
    [
        ("fleet.toml:21: Spark refuses this: ", "truck_id, count(*)", "truk_id, count(*)"),
        ("fleet.toml:8: Spark refuses this: ", "lat double", "lat dubble"),
        ("fleet.toml:9: Spark refuses this: ", 'column = "ts"', 'column = "when"'),
        ("fleet.toml:11: Spark refuses this: ", "lat BETWEEN", "latitude BETWEEN"),
        ("fleet.toml:10: Spark refuses this: ", '"seq"]', '"sequence"]'),
        ("fleet.toml:15: The module 'nowhere' cannot be imported: No module named 'nowhere'.", "MODULE:", "nowhere:"),
        ("fleet.toml:15: The module 'NAME_code' has no function 'southern'.", ":northern", ":southern"),
        (
            "fleet.toml:28: 'north' has no column 'truck'. Its columns are: truck_id,",
            'key = "truck_id"',
            'key = "truck"',
        ),
    ],
)
def test_what_spark_refuses_has_its_line(pipeline, topics, expected, old, new):
    """Is a mistake that only Spark can find told with file and line, before any query runs?"""
    assert old in FLEET
    written = pipeline.write(FLEET.replace(old, new))

    with pytest.raises(FileFault) as caught:
        plans_of(written, Wishes(brokers="localhost:1"), session=pipeline.spark)
    assert str(caught.value).startswith(f"{pipeline.place}/{expected}".replace("NAME", pipeline.name))


def test_plans_need_no_broker(pipeline):
    """Does `explain -v` show a plan for every query without a broker?"""
    plans = plans_of(pipeline.write(), Wishes(brokers="localhost:1"), session=pipeline.spark)

    assert list(plans) == ["north", "lake", "dead_letters.gps"]
    assert "EventTimeWatermark" in plans["north"]


FAILING = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
[source.numbers]
topic = "NAME_numbers"
format = "string"
[transform.inverse]
sql = "SELECT 10 / CAST(value AS INT) AS inverse FROM numbers"
[sink.out]
from = "inverse"
topic = "NAME_out"
[sink.copy]
from = "numbers"
topic = "NAME_copy"
value = "value"
"""


def test_a_query_that_fails_ends_the_run_and_a_next_one_goes_on(pipeline, topics):
    """Does a failure end in one sentence, with the checkpoint intact: once mended, is each record there once?"""
    topics.send(topics.create(f"{pipeline.name}_numbers"), [b"1", b"2"])
    assert pipeline.run(FAILING) == 0
    topics.send(f"{pipeline.name}_numbers", [b"0", b"5"])
    with pytest.raises(PipelineFault, match=r"Query out failed: .*[Dd]ivision by zero.*A next run goes on") as caught:
        pipeline.run(FAILING)
    assert "ArithmeticException" in str(caught.value.__cause__), "what -v shows"
    assert runs.find_run(pipeline.name).state == "failed"
    assert pipeline.run(FAILING.replace("CAST(value AS INT)", "nullif(CAST(value AS INT), 0)")) == 0

    inverses = sorted(json.loads(one.value).get("inverse", -1) for one in pipeline.read("_out"))
    assert inverses == [-1, 2.0, 5.0, 10.0]
    assert sorted(bytes(one.value) for one in pipeline.read("_copy")) == [b"0", b"1", b"2", b"5"]


def test_a_missing_topic_is_told(pipeline):
    """Is a topic nobody has a sentence where the run is to end by itself?"""
    with pytest.raises(PipelineFault, match=r"There is no topic '.*_gps' at"):
        pipeline.run()


JDBC = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
[source.words]
topic = "NAME_words"
format = "string"
starting = "group"
[transform.plain]
sql = "SELECT value AS word, offset AS place FROM words"
[transform.counted]
sql = "SELECT value AS word, count(*) AS times FROM words GROUP BY value"
[sink.rows]
from = "plain"
jdbc = "jdbc:derby:memory:NAME;create=true"
table = "words"
[sink.counts]
from = "counted"
jdbc = "jdbc:derby:memory:NAME;create=true"
table = "counts"
mode = "complete"
[sink.screen]
from = "plain"
console = true
"""


def test_databases_consoles_and_groups(pipeline, topics):
    """Do rows reach a database and the console, counts replace each other, and does a group say where to start?"""
    # The database would write its log into whatever directory the tests are started from.
    log = str(pipeline.place / "derby.log")
    pipeline.spark._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    words = topics.create(f"{pipeline.name}_words")
    topics.send(words, [b"skipped", b"apple", b"pear"])
    topics.admin.alter_group_offsets(f"{pipeline.name}-words", {(words, 0): 1})
    assert pipeline.run(JDBC) == 0
    topics.send(words, [b"apple"])
    assert pipeline.run(JDBC) == 0

    def rows(table):
        frame = pipeline.spark.read.jdbc(f"jdbc:derby:memory:{pipeline.name}", table)
        return sorted(tuple(row) for row in frame.collect())

    assert rows("words") == [("apple", 1), ("apple", 3), ("pear", 2)]
    assert rows("counts") == [("apple", 2), ("pear", 1)]
    assert "|pear |2    |" in pipeline.output.getvalue()


MORTAL = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
[source.numbers]
topic = "NAME_numbers"
format = "string"
[transform.mortal]
python = "MODULE:mortal"
inputs = ["numbers"]
options = { mark = "PLACE/died" }
[sink.out]
from = "mortal"
topic = "NAME_out"
value = "value"
exactly_once = true
"""
MORTAL_MODULE = """
import os, signal

def mortal(inputs, spark, options):
    @F.udf("string")
    def die_once(text):
        if text == "3" and not os.path.exists(options["mark"]):
            open(options["mark"], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return text
    return inputs["numbers"].select(die_once("value").alias("value"))
"""


def test_a_worker_that_is_killed_is_no_end(pipeline, topics):
    """Is a query that lost its Python process, on a master with one attempt, run again with each record there once?"""
    topics.send(topics.create(f"{pipeline.name}_numbers"), [b"%d" % n for n in range(6)])
    text = MORTAL.replace("PLACE", str(pipeline.place))
    pipeline.module = MODULE + MORTAL_MODULE

    assert 0 == pipeline.run(text)
    assert (pipeline.place / "died").exists()
    assert [b"%d" % n for n in range(6)] == sorted(bytes(one.value) for one in pipeline.read("_out"))
    assert "died in the middle of its work" in pipeline.output.getvalue()


AVRO = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
dead_letter = "NAME_bad"
[source.gps]
topic = "NAME_gps"
format = "avro"
avro_schema = "report.avsc"
schema = "truck string, speed double"
require = "speed >= 0"
[transform.fast]
sql = "SELECT truck, speed FROM gps WHERE speed > 80"
[sink.out]
from = "fast"
topic = "NAME_out"
key = "truck"
"""


def test_avro_comes_in(pipeline, topics):
    """Are Avro values read by a schema in a file beside the pipeline's, and those that are none dead letters?"""
    import fastavro

    fields = [{"name": "truck", "type": "string"}, {"name": "speed", "type": ["null", "double"]}]
    schema = {"type": "record", "name": "report", "fields": fields}
    (pipeline.place / "report.avsc").write_text(json.dumps(schema))

    def encoded(truck, speed):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"truck": truck, "speed": speed})
        return out.getvalue()

    values = [encoded("T1", 90.5), encoded("T2", 70.0), encoded("T3", -1.0), encoded("T4", 81.0), b"\xff no avro"]
    topics.send(topics.create(f"{pipeline.name}_gps"), values)
    assert 0 == pipeline.run(AVRO)

    found = {one.key: json.loads(one.value) for one in pipeline.read("_out")}
    assert {b"T1": {"truck": "T1", "speed": 90.5}, b"T4": {"truck": "T4", "speed": 81.0}} == found
    assert {values[2], values[4]} == {bytes(one.value) for one in pipeline.read("_bad")}


REPEATS = """\
[pipeline]
name = "NAME"
checkpoint = "checkpoint"
dead_letter = "NAME_bad"

[source.gps]
topic = "NAME_gps"
schema = "truck_id string, lat double, seq bigint"
drop_repeats_within = 10
require = ["lat < 90", "length(truck_id) < 3"]

[sink.out]
from = "gps"
topic = "NAME_out"
"""


def test_repeats_are_left_out(pipeline, topics):
    """Is a record that stands there again left out, across batches too, but every bad one told?"""
    gps = topics.create(f"{pipeline.name}_gps")
    good, bad = [report("T1", number) for number in range(9)], [report("T1", 9, lat=91.0), report("LONG", 1)]
    topics.send(gps, [*good, good[8], *bad])
    assert 0 == pipeline.run(REPEATS)
    topics.send(gps, [good[7], good[0], *bad])
    assert 0 == pipeline.run(REPEATS)

    assert [*range(9), 0] == [json.loads(one.value)["seq"] for one in sorted(pipeline.read("_out"), key=_place)]
    assert sorted(2 * bad) == sorted(bytes(one.value) for one in pipeline.read("_bad"))


def _place(record):
    return record.partition, record.offset
