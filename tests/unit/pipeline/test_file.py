"""Pipeline files: what they declare, and every mistake with its line."""

from pathlib import Path

import pytest

from headrace.pipeline.declaration import Watermark
from headrace.pipeline.fault import FileFault, PipelineFault
from headrace.pipeline.file import load_pipeline, parse_pipeline

FLEET = """\
[pipeline]
name = "fleet"
brokers = "localhost:9092"
checkpoint = "checkpoints/fleet"
trigger = "2 seconds"
dead_letter = "fleet_dlq"

[pipeline.properties]
"security.protocol" = "SSL"
"retries" = 3

[pipeline.spark]
"spark.ui.enabled" = true

[source.gps]
topic = "trucks_gps"
schema = "truck_id string, lat double, lon double, ts timestamp, seq bigint"
watermark = { column = "ts", delay = "2 minutes" }
deduplicate = ["truck_id", "seq"]
require = "lat BETWEEN -90 AND 90"
max_records_per_batch = 1000
starting = 2026-11-15T20:00:00Z

[source.names]
topics = ["a", "b"]
format = "string"

[transform.clean]
sql = '''
SELECT truck_id, lat
FROM GPS
WHERE lat IS NOT NULL'''

[transform.alerts]
python = "alerts:detect"
inputs = ["clean", "names"]
options = { limit_kmh = 90 }

[sink.alerts]
from = "alerts"
topic = "trucks_alerts"
key = "truck_id"
exactly_once = true
trigger = "once per minute"

[sink.lake]
from = "clean"
parquet = "lake/stats"
partition_by = ["hour(ts)"]
compact = true
"""


def parse(text):
    return parse_pipeline(text, file=Path("fleet.toml"))


def mistakes(text):
    with pytest.raises(FileFault) as caught:
        parse(text)
    return str(caught.value).splitlines()


def test_a_whole_file():
    """Does a file with everything in it become the pipeline it declares?"""
    fleet = parse(FLEET)
    gps, names = fleet.sources["gps"], fleet.sources["names"]
    alerts, lake = fleet.sinks["alerts"], fleet.sinks["lake"]

    assert (fleet.name, fleet.brokers, fleet.trigger.interval_ms) == ("fleet", "localhost:9092", 2000)
    assert (fleet.properties, fleet.spark) == (
        {"security.protocol": "SSL", "retries": "3"},
        {"spark.ui.enabled": "true"},
    )
    assert (gps.topics, gps.format, gps.group, gps.dead_letter) == (("trucks_gps",), "json", "fleet-gps", "fleet_dlq")
    assert gps.watermark == Watermark(column="ts", delay_ms=120_000)
    assert (gps.starting, names.starting) == (1794772800000, "earliest")
    assert (gps.has_dead_letters, names.has_dead_letters) == (True, False)
    assert (fleet.transforms["clean"].inputs, fleet.transforms["alerts"].inputs) == (("gps",), ("clean", "names"))
    assert fleet.transforms["alerts"].options == {"limit_kmh": 90}
    assert (alerts.kind, alerts.target, alerts.exactly_once, alerts.trigger.interval_ms) == (
        "topic",
        "trucks_alerts",
        True,
        60_000,
    )
    assert (lake.kind, lake.partition_by, lake.compact, lake.compact_after_ms) == (
        "parquet",
        ("hour(ts)",),
        True,
        600_000,
    )
    assert fleet.sources_of("alerts") == ("gps", "names")


def test_dead_letters_have_a_topic_unless_declined():
    """Do bad records go to NAME_dlq by default, elsewhere or nowhere if the file says so?"""
    said = FLEET.replace('dead_letter = "fleet_dlq"\n', "")

    assert parse(said).sources["gps"].dead_letter == "fleet_dlq"
    assert (
        parse(said.replace('topic = "trucks_gps"', 'topic = "t"\ndead_letter = "x"')).sources["gps"].dead_letter == "x"
    )
    declined = parse(FLEET.replace('"fleet_dlq"', "false")).sources["gps"]
    assert (declined.dead_letter, declined.has_dead_letters) == ("", False)


def replaced(old, new):
    assert old in FLEET
    return FLEET.replace(old, new)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (
            "fleet.toml:2: This is no TOML: invalid value. Mend the line.",
            "[pipeline]\nname = fleet\n",
        ),
        ("fleet.toml:1: The table [pipeline] is missing. Write [pipeline] and a name below it.", "[source.a]\n"),
        (
            "fleet.toml:2: 'name' of [pipeline] must be a name of small letters, digits, dashes and underscores. Mend",
            replaced('name = "fleet"', 'name = "The Fleet"'),
        ),
        ("fleet.toml:1: [pipeline] lacks the key 'name'.", replaced('name = "fleet"\n', "")),
        (
            "fleet.toml:15: There is no table [sources]. Did you mean 'source'?",
            replaced("[source.gps]", "[sources.gps]"),
        ),
        (
            "fleet.toml:5: 'trigger' of [pipeline] must be a trigger such as",
            replaced('"2 seconds"', '"now and then"'),
        ),
        (
            "fleet.toml:16: [source.gps] has no key 'topik'. Did you mean 'topic'?",
            replaced('topic = "trucks', 'topik = "trucks'),
        ),
        ("fleet.toml:15: Source 'gps' has none of topic, topics, pattern.", replaced('topic = "trucks_gps"\n', "")),
        (
            "fleet.toml:17: Source 'gps' has topic and pattern. Keep one",
            replaced("schema =", 'pattern = "x"\nschema ='),
        ),
        ("fleet.toml:15: Source 'gps' lacks a schema.", replaced("schema = ", "# ")),
        ("fleet.toml:19: Source 'gps' needs a watermark to deduplicate.", replaced("watermark = {", "# {")),
        (
            "fleet.toml:36: Transform 'alerts' needs a watermark of source 'names' to deduplicate.",
            replaced('inputs = ["clean"', 'deduplicate = "truck_id"\ninputs = ["clean"'),
        ),
        ("fleet.toml:18: 'watermark' of [source.gps] must be { column", replaced('delay = "2', 'wait = "2')),
        ("fleet.toml:21: 'max_records_per_batch' of [source.gps] must be a whole", replaced("= 1000", '= "many"')),
        ("fleet.toml:22: 'starting' of [source.gps] must be 'earliest'", replaced("2026-11-15T20:00:00Z", '"soon"')),
        (
            "fleet.toml:31: Transform 'clean' reads 'gbs', which is not declared. Did you mean 'gps'?",
            replaced("FROM GPS", "FROM gbs"),
        ),
        (
            "fleet.toml:36: Transform 'alerts' reads 'cleaned', which is not declared. Did you mean 'clean'?",
            replaced('["clean"', '["cleaned"'),
        ),
        (
            "fleet.toml:35: 'python' of [transform.alerts] must be 'module:function'.",
            replaced("alerts:detect", "alerts.py"),
        ),
        ("fleet.toml:34: Transform 'alerts' lacks inputs.", replaced('inputs = ["clean", "names"]', "")),
        ("fleet.toml:40: Sink 'alerts' takes 'allerts', which", replaced('from = "alerts"', 'from = "allerts"')),
        ("fleet.toml:28: The transforms clean -> alerts -> clean wait", replaced("FROM GPS", "FROM gps, alerts")),
        ("fleet.toml:24: Nobody takes what source 'names' gives.", replaced(', "names"]', "]")),
        ("fleet.toml:28: 'gps' is the name of a source", replaced("[transform.clean]", "[transform.gps]")),
        ("fleet.toml:48: 'key' makes sense for topic sinks", replaced("parquet =", 'key = "x"\nparquet =')),
        ("fleet.toml:46: Sink 'lake' has none of topic", replaced('parquet = "lake/stats"\n', "")),
        (
            "fleet.toml:48: A parquet sink cannot be in mode update.",
            replaced("parquet =", 'mode = "update"\nparquet ='),
        ),
        ("fleet.toml:28: 'cle-an' cannot be a name.", replaced("transform.clean", "transform.cle-an")),
    ],
)
def test_mistakes_have_their_line(expected, text):
    """Is every mistake told in a sentence with its line, and what to do?"""
    told = mistakes(text)

    assert any(line.startswith(expected) for line in told), told


def test_all_mistakes_are_told_at_once():
    """Are several mistakes told together, in the order of their lines?"""
    told = mistakes(replaced("trucks_gps", "no topic").replace('"2 seconds"', '"?"'))

    assert [line.split(":")[1] for line in told] == ["5", "16"]


def test_files_that_are_none(tmp_path):
    """Is a file that is absent, a directory, no text or much too large refused in a sentence?"""
    binary, large = tmp_path / "binary", tmp_path / "large"
    binary.write_bytes(b"\xff\xfe\x00")
    large.write_bytes(b"#" * 2_000_000)

    for path, expected in (
        (tmp_path / "absent.toml", "no such file or directory"),
        (tmp_path, "is a directory"),
        (binary, "is no text in UTF-8"),
        (large, "is too large for a pipeline file"),
    ):
        with pytest.raises(PipelineFault, match=expected):
            load_pipeline(path)


def test_paths_are_seen_from_the_file(tmp_path):
    """Is a relative path one from the file's directory, and an address left alone?"""
    (tmp_path / "fleet.toml").write_text(FLEET)
    fleet = load_pipeline(tmp_path / "fleet.toml")

    assert (fleet.path("lake/stats"), fleet.path("hdfs://n/lake")) == (str(tmp_path / "lake/stats"), "hdfs://n/lake")
