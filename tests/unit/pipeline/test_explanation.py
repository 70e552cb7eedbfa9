"""A pipeline's graph in words."""

from pathlib import Path

from headrace.pipeline.explanation import graph_document, graph_lines
from headrace.pipeline.file import parse_pipeline
from headrace.pipeline.graph import query_names, sources_of_query, steps_in_order

TEXT = """\
[pipeline]
name = "fleet"
[source.gps]
topic = "trucks_gps"
schema = "truck_id string, ts timestamp"
watermark = { column = "ts", delay = "120 seconds" }
deduplicate = "truck_id"
require = "ts IS NOT NULL"
[source.notes]
pattern = "notes_.*"
format = "string"
starting = { notes_a = { 0 = 7 } }
[transform.both]
sql = "SELECT * FROM late JOIN notes ON true"
[transform.late]
python = "late:find"
inputs = "gps"
deduplicate = ["truck_id", "ts"]
[sink.out]
from = "both"
topic = "out"
key = "truck_id"
exactly_once = true
[sink.lake]
from = "gps"
parquet = "lake"
partition_by = "day(ts)"
trigger = "available now"
"""
PIPELINE = parse_pipeline(TEXT, file=Path("fleet.toml"))

GPS = (
    "source gps topic trucks_gps; json; from earliest; group fleet-gps; late after 2 minutes by ts; "
    "once per truck_id; where ts IS NOT NULL"
)


def test_steps_come_after_what_they_read():
    """Is the order of steps one in which each finds its inputs, whatever the order in the file?"""
    assert steps_in_order(PIPELINE) == ["gps", "late", "notes", "both"]
    assert query_names(PIPELINE) == ["out", "lake", "dead_letters.gps"]
    assert sources_of_query(PIPELINE, "out") == ("gps", "notes")
    assert sources_of_query(PIPELINE, "dead_letters.gps") == ("gps",)


def test_the_graph_in_words():
    """Does every step have its line, with what it reads and does?"""
    lines = [" ".join(line.split()) for line in graph_lines(PIPELINE)]

    assert lines == [
        GPS,
        "transform late <- gps python late:find; once per truck_id, ts",
        'source notes pattern notes_.*; string; from offsets {"notes_a": {"0": 7}}; group fleet-notes',
        "transform both <- late, notes SELECT * FROM late JOIN notes ON true",
        "sink out <- both topic out; key truck_id; exactly once; append; every 1 second",
        "sink lake <- gps parquet lake; by day(ts); append; available now",
        "sink dead_letters.gps <- gps topic fleet_dlq",
    ]
    assert len({line.find("<-") for line in graph_lines(PIPELINE)} - {-1}) == 1
    assert [one["name"] for one in graph_document(PIPELINE)][-1] == "dead_letters.gps"
