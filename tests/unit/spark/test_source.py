import pickle

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StringType, StructField, StructType

import pyspark_headrace
from headrace.client.fault import BadOption, UnknownOption
from headrace.spark.batch_reader import BatchReader
from headrace.spark.source import HeadraceSource
from headrace.spark.stream_reader import StreamReader
from headrace.spark.table import BadSchema

READ = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
OFFSETS = StructType([StructField("offset", LongType())])


def source(**options):
    return HeadraceSource(CaseInsensitiveDict({**READ, **options}))


def test_spark_finds_it():
    """Is the source what Spark looks for in modules of such a name?"""
    assert (HeadraceSource, "headrace") == (pyspark_headrace.DefaultSource, pyspark_headrace.DefaultSource.name())


def test_it_travels():
    """Can Spark send the source, and its readers, to other processes?"""
    found = pickle.loads(pickle.dumps(source()))

    assert isinstance(pickle.loads(pickle.dumps(found.reader(OFFSETS))), BatchReader)
    assert isinstance(pickle.loads(pickle.dumps(found.streamReader(OFFSETS))), StreamReader)


def test_schema():
    """Is the schema that of the options?"""
    assert "headers" not in source().schema().fieldNames()
    assert "headers" in source(includeHeaders="true").schema().fieldNames()
    assert StringType() == source(valueFormat="string").schema()["value"].dataType


def test_faults_at_once():
    """Is each fault told at the first step that can tell it?"""
    with pytest.raises(UnknownOption, match=r"Did you mean startingOffsets\?"):
        source(startingOffset="earliest")
    with pytest.raises(BadOption, match="startingOffsets is no JSON"):
        source(startingOffsets="yesterday").schema()
    with pytest.raises(BadSchema, match="Column 'truck' is none of"):
        source().reader(StructType([StructField("truck", StringType())]))
    with pytest.raises(BadOption, match="avroSchema"):
        source(valueFormat="avro").streamReader(StructType([StructField("truck", StringType())]))
