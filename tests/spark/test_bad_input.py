"""What users get wrong: each is one sentence and what to do, whatever else Spark says; and nothing is broken by it."""

import json

import pytest

from headrace.testing.ports import free_port

EARLIEST = {"startingOffsets": "earliest"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscrbe": "t"}, "subscrbe is no option of the data source. Did you mean subscribe?"),
        (
            {"startingOffset": "earliest"},
            "startingoffset is no option of the data source. Did you mean startingOffsets?",
        ),
        ({"kafka.bootstrap.server": "x"}, "Did you mean kafka.bootstrap.servers?"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set here. Say startingOffsets"),
        ({"topic": "t"}, "topic is no option for reading. It is one for writing."),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger=many is not a number above 0."),
        (
            {"startingOffsets": "{nonsense"},
            "startingOffsets is no JSON: Expecting property name enclosed in double quot",
        ),
        ({"startingOffsets": '{"t":{"0":"x"}}'}, """startingOffsets cannot have "x" for 't' partition 0. Write {"""),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets cannot be the earliest."),
        ({"startingOffsets": "group"}, "startingOffsets=group needs to know which group. Set commitGroup to its name."),
        ({"valueFormat": "xml"}, "valueFormat=xml is unknown. Use one of binary, string, json, avro."),
        ({"valueFormat": "json"}, "valueFormat=json needs to know the fields of the value. Name them with .schema("),
        ({"subscribePattern": "t"}, "More than one of subscribe, subscribePattern and assign is set."),
        ({"kafka.security.protocol": "TLS"}, "security.protocol=TLS is unknown. Use one of PLAINTEXT"),
    ],
)
def test_options(read, options, sentence):
    """Is a bad option refused when the table is loaded, in one sentence that says what to do?"""
    with pytest.raises(Exception, match=r"\w") as refusal:
        read("t", more=options)

    assert sentence in str(refusal.value)


def test_no_topic(read, spark, broker):
    """Is a reader without a topic, or without a broker, told what to set?"""
    with pytest.raises(Exception, match=r"No topic is given. Set one of subscribe, subscribePattern, assign."):
        read()
    with pytest.raises(Exception, match=r"kafka.bootstrap.servers is missing. Say where a broker is"):
        spark.read.format("headrace").option("subscribe", "t").load()


def test_unknown_topic(read, stream, topics, topic):
    """Is a topic that is not there named, and does the same query run once it is?"""
    with pytest.raises(Exception, match=f"Topic '{topic}' does not exist. Create it .headrace topics create {topic}."):
        read(topic).count()
    query = stream(topic, **EARLIEST)
    with pytest.raises(Exception, match=f"Topic '{topic}' does not exist"):
        query.run()
    topics.create(topic)
    topics.send(topic, [b"now"])

    assert [b"now"] == [bytes(row.value) for row in query.run()]


def test_no_broker(spark):
    """Is a broker that is not there told from a topic that is not?"""
    port = free_port()
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "500"}

    with pytest.raises(Exception, match=f"Cannot connect to 127.0.0.1:{port}: .*Is the broker running?"):
        spark.read.format("headrace").options(**options).load().count()


def test_offsets_that_do_not_fit(read, topics, topic):
    """Are offsets refused that leave a partition out, name one that is not there, or go backward?"""
    topics.create(topic, 2)
    topics.send(topic, [b"1", b"2", b"3"], partition=0)

    def begin(offsets, **more):
        return read(topic, startingOffsets=json.dumps({topic: offsets}), **more).count()

    with pytest.raises(Exception, match=f"startingOffsets says nothing about {topic}-1. Use -2 for its earliest"):
        begin({"0": 0})
    with pytest.raises(Exception, match=f"startingOffsets names {topic}-7, which is not read"):
        begin({"0": 0, "1": 0, "7": 0})
    with pytest.raises(Exception, match=f"Data is lost: startingOffsets is 9 for {topic}-0, which has 0 to 3"):
        begin({"0": 9, "1": 0})
    with pytest.raises(Exception, match=f"startingOffsets 2 is behind endingOffsets 1 for {topic}-0"):
        begin({"0": 2, "1": 0}, endingOffsets=json.dumps({topic: {"0": 1, "1": 0}}))
    assert 0 == begin({"0": 9, "1": 0}, failOnDataLoss="false")


def test_records_gone_before_a_batch(read, topics, topic):
    """Is it a loss to begin before the first record there is?"""
    topics.create(topic)
    topics.send(topic, [b"1", b"2", b"3"])
    topics.delete_records(topic, 2)
    begin = json.dumps({topic: {"0": 1}})

    with pytest.raises(Exception, match=f"Data is lost: startingOffsets is 1 for {topic}-0, which has 2 to 3"):
        read(topic, startingOffsets=begin).count()
    assert 1 == read(topic, startingOffsets=begin, failOnDataLoss="false").count()


@pytest.mark.parametrize(
    ("schema", "options", "sentence"),
    [
        ("truck string", {}, "Column 'truck' is none of key, value, topic, partition, offset, timestamp"),
        ("offset string", {}, "Column 'offset' cannot be string. It is bigint; cast it after reading."),
        ("value double", {"valueFormat": "json"}, "Column 'value' cannot be double. It is binary or string"),
        ("truck string", {"valueFormat": "avro"}, "avroSchema"),
    ],
)
def test_schemas(read, stream, topics, topic, schema, options, sentence):
    """Is a schema that cannot be read refused, in a table and in a stream, before anything is read?"""
    topics.create(topic)
    topics.send(topic, [b"{}"])
    with pytest.raises(Exception, match=r"\w") as refusal:
        read(topic, schema=schema, **options).collect()
    assert sentence in str(refusal.value)

    query = stream(topic, schema=schema, checkpoint="one", **EARLIEST, **options)
    with pytest.raises(Exception, match=r"\w") as refusal:
        query.run()
    assert sentence in str(refusal.value)
    assert 1 == len(stream(topic, checkpoint="one", **EARLIEST).run())


def test_stream_has_no_end(stream, topics, topic):
    """Is an end refused for a stream?"""
    topics.create(topic)
    with pytest.raises(Exception, match="endingOffsets cannot be set for a stream"):
        stream(topic, endingOffsets="latest").run()


def test_table_from_its_end(read, stream, topics, topic):
    """Is a table that begins at its end refused, and a stream not?"""
    topics.create(topic)
    with pytest.raises(Exception, match="startingOffsets=latest reads nothing in a batch"):
        read(topic, startingOffsets="latest").count()
    assert [] == stream(topic, startingOffsets="latest").run()
