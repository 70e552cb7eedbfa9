"""What the console consumers print for a record."""

import json
from dataclasses import dataclass

import pytest

from headrace.cli.record_format import FORMATTERS, default_format, document_format, named_format, template_format
from headrace.cli.tool import UsageError
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue
from headrace.wire.coordinator_records import GROUP_RECORDS


@dataclass
class Fake:
    """A record as confluent-kafka would hand it out."""

    key_: bytes | None = b"k"
    value_: bytes | None = b"v"
    headers_: list | None = None
    timestamp_: tuple = (1, 1731700000000)
    epoch_: int | None = 4

    def topic(self):
        return "t"

    def partition(self):
        return 3

    def offset(self):
        return 12

    def key(self):
        return self.key_

    def value(self):
        return self.value_

    def headers(self):
        return self.headers_

    def timestamp(self):
        return self.timestamp_

    def leader_epoch(self):
        return self.epoch_

    def delivery_count(self):
        return None


EVERYTHING = {f"print.{name}": "true" for name in ("timestamp", "partition", "offset", "epoch", "headers", "key")}


@pytest.mark.parametrize(
    ("properties", "record", "expected"),
    [
        ({}, Fake(), b"v\n"),
        ({}, Fake(value_=None), b"null\n"),
        ({"line.separator": "|", "null.literal": "-"}, Fake(value_=None), b"-|"),
        (
            EVERYTHING,
            Fake(headers_=[("h1", b"v1"), ("h2", None)]),
            b"CreateTime:1731700000000\tPartition:3\tOffset:12\tEpoch:4\th1:v1,h2:null\tk\tv\n",
        ),
        (
            EVERYTHING | {"print.delivery": "TRUE", "key.separator": " "},
            Fake(timestamp_=(0, -1), epoch_=None, key_=None),
            b"NO_TIMESTAMP Partition:3 Offset:12 Delivery:NOT_PRESENT Epoch:NOT_PRESENT NO_HEADERS null v\n",
        ),
        ({"print.timestamp": "true", "print.value": "false"}, Fake(timestamp_=(2, 5)), b"LogAppendTime:5\n"),
        ({"print.value": "false"}, Fake(), b""),
        ({"value.deserializer": "a.b.LongDeserializer"}, Fake(value_=(-7).to_bytes(8, signed=True)), b"-7\n"),
        ({"print.key": "true", "key.deserializer": "BytesDeserializer"}, Fake(key_=b"a\x00"), b"a\\x00\tv\n"),
    ],
)
def test_default_formatter(properties, record, expected):
    """Are the parts printed in Kafka's order, each with its label and separators?"""
    assert default_format(properties)(record) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (r"%t %p %o %k %v\n", b"t 3 12 k v\n"),
        (r"%s\t%T\t%h\\%%", b"v\t1731700000000\th:x\\%"),
        ("%K/%S", b"1/1"),
        (r"\q", rb"\q"),
    ],
)
def test_template(template, expected):
    """Are a template's letters and escapes replaced, and the rest printed as it is?"""
    assert template_format(template, {})(Fake(headers_=[("h", b"x")])) == expected


@pytest.mark.parametrize("template", ["%x", "100%"])
def test_template_mistakes(template):
    """Is a letter that means nothing refused?"""
    with pytest.raises(UsageError, match="means nothing"):
        template_format(template, {})


def test_documents_for_programs():
    """Is JSON one line per record, and YAML one document?"""
    record = Fake(headers_=[("h", b"\xff")], key_=None)
    line = document_format("json")(record)

    expected = {
        "topic": "t",
        "partition": 3,
        "offset": 12,
        "timestamp": 1731700000000,
        "timestampType": "CreateTime",
        "leaderEpoch": 4,
        "headers": [{"key": "h", "value": {"base64": "/w=="}}],
        "key": None,
        "value": "v",
    }
    assert line.count(b"\n") == 1
    assert json.loads(line) == expected
    assert document_format("yaml")(record).startswith(b'---\n"topic": "t"\n')


def test_class_names():
    """Is a formatter found by the last part of its class name, and one nobody knows refused?"""
    assert named_format("kafka.tools.DefaultMessageFormatter", {})(Fake()) == b"v\n"
    assert named_format("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})(Fake()) == b""
    with pytest.raises(UsageError, match=r"com\.example\.Mine"):
        named_format("com.example.Mine", {})


def test_offsets_formatter():
    """Are committed offsets shown as Kafka's formatter shows them, and records of other kinds left out?"""
    key, value = GROUP_RECORDS.encode(
        OffsetCommitKey(group="g", topic="t", partition=1), OffsetCommitValue(offset=9, commit_timestamp=5)
    )
    shown = named_format("org.apache.kafka.tools.consumer.OffsetsMessageFormatter", {})
    others = named_format("GroupMetadataMessageFormatter", {})

    assert shown(Fake(key_=key, value_=value)) == (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},"value":{"version":4,"data":'
        b'{"offset":9,"leaderEpoch":-1,"metadata":"","commitTimestamp":5}}}'
    )
    assert shown(Fake(key_=key, value_=None)).endswith(b'"value":null}')
    assert others(Fake(key_=key, value_=value)) == b""
    assert shown(Fake(key_=b"\x7f\xff", value_=None)) == b""


@pytest.mark.parametrize("name", FORMATTERS)
def test_no_formatter_needs_properties(name):
    """Can every formatter be made without properties?"""
    assert callable(FORMATTERS[name]({}))
