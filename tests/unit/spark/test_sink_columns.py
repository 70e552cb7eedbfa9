"""What a sink refuses before it sends anything: columns and properties that cannot be."""

import pytest

from headrace.client.fault import BadOption
from headrace.spark.option_table import sink_options
from headrace.spark.producer_settings import (
    ALL_REPLICAS,
    IN_FLIGHT_MAX,
    TRANSACTION_TIMEOUT_MS,
    ProducerSettings,
    producer_settings,
)
from headrace.spark.sink_columns import BadColumns, SinkColumns, sink_columns

types = pytest.importorskip("pyspark.sql.types")

HEADERS = "headers array<struct<key: string, value: binary>>"


def schema(text):
    return types.StructType(
        [types.StructField(name, _TYPES[kind]) for name, kind in (part.split() for part in text.split(", "))]
    )


_TYPES = {
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "timestamp": types.TimestampType(),
    "headers": types.ArrayType(
        types.StructType([types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())])
    ),
}


def test_columns_are_found_by_name():
    """Are columns found whatever their order and case, and what only a source has left out?"""
    found = sink_columns(
        schema("offset long, Value string, key binary, headers headers, partition int, timestamp timestamp"),
        topic="t",
    )

    assert SinkColumns(key=2, value=1, headers=3, partition=4, timestamp=5) == found


def test_the_option_goes_before_the_column():
    """Does the option `topic` count and not the column, as in Spark's connector?"""
    assert sink_columns(schema("topic string, value string"), topic="t").topic == -1
    assert sink_columns(schema("topic string, value string"), topic="").topic == 0


@pytest.mark.parametrize(
    ("text", "topic", "said"),
    [
        ("key string", "t", "no column named value"),
        ("value int", "t", "Column value is int. It has to be string or binary: cast it."),
        ("value string, key long", "t", "Column key is bigint"),
        ("value string, partition long", "t", "Column partition is bigint. It has to be int"),
        ("value string, timestamp long", "t", "Column timestamp is bigint. It has to be timestamp"),
        ("value string, headers string", "t", "Column headers is string"),
        ("value string, topic int", "", "Column topic is int"),
        ("value string", "", "which topic to write to"),
        ("value string, speed long", "t", "Column speed cannot be written.*to_json"),
    ],
)
def test_columns_that_cannot_be(text, topic, said):
    """Is what is wrong with the columns one sentence, and what to do another?"""
    with pytest.raises(BadColumns, match=said):
        sink_columns(schema(text), topic=topic)


def settings(**properties):
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in properties.items() if name != "exactlyOnce"}
    own = {"exactlyOnce": properties["exactlyOnce"]} if "exactlyOnce" in properties else {}
    return producer_settings(sink_options({"kafka.bootstrap.servers": "localhost:9092", **own, **given}))


def test_defaults():
    """Are records idempotent and acknowledged by all replicas, unless one says otherwise?"""
    assert ProducerSettings() == settings()
    assert (ALL_REPLICAS, True, IN_FLIGHT_MAX) == (settings().acks, settings().is_idempotent, settings().in_flight_max)
    assert settings().transaction_timeout_ms == TRANSACTION_TIMEOUT_MS
    assert not settings(acks="1").is_idempotent
    assert settings(acks="-1", compression_type="lz4").codec == 3


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"acks": "0"}, "acks=0 cannot be used"),
        ({"acks": "2"}, "acks=2 is unknown. Use all or 1"),
        ({"acks": "1", "enable_idempotence": "true"}, "acks=1"),
        ({"acks": "1", "exactlyOnce": "true"}, "acks=1"),
        ({"enable_idempotence": "false", "exactlyOnce": "true"}, "idempotence=false"),
        ({"enable_idempotence": "perhaps"}, "neither true nor false"),
        ({"compression_type": "rar"}, "rar is unknown. Use one of none, gzip"),
        ({"max_in_flight_requests_per_connection": "6"}, "from 1 to 5"),
        ({"batch_size": "many"}, "batch.size=many is not a number"),
        ({"transactional_id": "mine"}, "exactlyOnce=true and transactionalIdPrefix"),
        ({"partitioner_class": "com.acme.Mine"}, "column named partition"),
    ],
)
def test_properties_that_cannot_be(properties, said):
    """Is a property that contradicts another, or means nothing here, a sentence before anything is sent?"""
    with pytest.raises(BadOption, match=said):
        settings(**properties)


def test_a_topic_is_not_overwritten():
    """Is mode overwrite refused, as it would have to delete what others wrote?"""
    from headrace.spark.sink import BatchSink

    given = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"}
    with pytest.raises(BadOption, match="A topic cannot be overwritten"):
        BatchSink(schema("value string"), given, overwrite=True)
    BatchSink(schema("value string"), given)
