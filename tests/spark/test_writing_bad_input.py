"""Rows that cannot be written: one sentence and what to do, and with exactlyOnce nothing of them is seen."""

import pytest
from pyspark.errors import PySparkException

from spark.committed import read_committed

# Columns are separated by semicolons, as functions have commas of their own.
BAD_TABLES = [
    ("string(id) name", {}, "Column name cannot be written.*to_json"),
    ("id value", {}, "Column value is bigint. It has to be string or binary: cast it"),
    ("string(id) key", {}, "no column named value"),
    ("string(id) value; id partition", {}, "Column partition is bigint"),
    ("string(id) value", {"topic": ""}, "which topic to write to"),
    ("string(id) value", {"kafka.acks": "0"}, "kafka.acks=0 cannot be used"),
    ("string(id) value", {"topik": "t"}, "topik is no option.*Did you mean topic"),
    ("string(id) value", {"subscribe": "t"}, "subscribe is no option for writing"),
    ("string(id) value", {"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
]
BAD_ROWS = [
    ("string(id) value; int(if(id = 900, 7, 0)) partition", {}, "has no partition 7"),
    ("if(id = 900, null, '{topic}') topic; string(id) value", {"topic": ""}, "A row has no topic"),
    ("if(id = 900, 'nowhere', '{topic}') topic; string(id) value", {"topic": ""}, "There is no topic nowhere"),
    ("if(id = 900, repeat('x', 9000), string(id)) value", {}, "MESSAGE_TOO_LARGE.*max.message.bytes"),
]


def given(broker, topic, options):
    found = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **options}
    return {name: value for name, value in found.items() if value or name != "topic"}


@pytest.mark.parametrize(("select", "options", "sentence"), BAD_TABLES)
def test_tables_that_cannot_be(spark, broker, topics, topic, select, options, sentence):
    """Is a table or an option that cannot be refused before any task runs, in one sentence?"""
    topics.create(topic)
    writer = spark.range(10).selectExpr(*select.split(";")).write.format("headrace")

    with pytest.raises(PySparkException, match=sentence):
        writer.options(**given(broker, topic, options)).mode("append").save()
    assert [] == read_committed(broker.bootstrap, topic, 1)


@pytest.mark.parametrize(("select", "options", "sentence"), BAD_ROWS)
def test_rows_that_cannot_be(spark, broker, topics, topic, select, options, sentence):
    """Is a bad row among good ones a sentence, and with exactlyOnce nothing seen of any?"""
    topics.create(topic, max_message_bytes="4000")
    frame = spark.range(0, 1000, 1, 2).selectExpr(*select.format(topic=topic).split(";"))
    options = {**options, "exactlyOnce": "true", "kafka.batch.size": "1000", "kafka.max.block.ms": "2000"}

    with pytest.raises(PySparkException, match=sentence):
        frame.write.format("headrace").options(**given(broker, topic, options)).mode("append").save()
    assert [] == read_committed(broker.bootstrap, topic, 1)


def test_a_stream_that_is_mended_goes_on(spark, broker, topics, topic, tmp_path):
    """A stream meets a row it cannot write: is the checkpoint good, and nothing lost or twice, once that is mended?"""
    source, target = topics.create(f"{topic}-in"), topics.create(f"{topic}-out", max_message_bytes="4000")
    topics.send(source, [b"%d" % number for number in range(100)])
    topics.send(source, [b"x" * 9000])

    def copy(change):
        reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="40").load()
        writer = frame.selectExpr(change).writeStream.format("headrace")
        writer = writer.options(**given(broker, target, {"exactlyOnce": "true"}))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException, match=r"MESSAGE_TOO_LARGE.*max\.message\.bytes"):
        copy("value")
    assert 80 == len(read_committed(broker.bootstrap, target, 1))

    copy("substr(value, 1, 5) value")
    values = [one.value for one in read_committed(broker.bootstrap, target, 1)]
    assert [*(b"%d" % number for number in range(100)), b"xxxxx"] == values
