"""Records of the cluster metadata log in Kafka's framing."""

import struct
from typing import Any
from uuid import UUID

import pytest

from headrace.model.errors import MalformedRequest
from headrace.wire.messages import metadata_records
from headrace.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from headrace.wire.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.wire.schema import Message, load_messages

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")

EXAMPLES = [
    (NoOpRecord(), 0, b"\x01\x14\x00\0"),
    (TopicRecord(name="foo", topic_id=TOPIC_ID), 0, b"\x01\x02\x00\x04foo" + TOPIC_ID.bytes + b"\0"),
    (RemoveTopicRecord(topic_id=TOPIC_ID), 0, b"\x01\x09\x00" + TOPIC_ID.bytes + b"\0"),
    (FeatureLevelRecord(name="metadata.version", feature_level=25), 0, b"\x01\x0c\x00\x11metadata.version\x00\x19\x00"),
    (
        ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="5"),
        0,
        b"\x01\x04\x00\x02\x04foo\x0dretention.ms\x025\x00",
    ),
    (
        ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value=None),
        0,
        b"\x01\x04\x00\x02\x04foo\x0dretention.ms\x00\x00",
    ),
    (
        ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000),
        0,
        b"\x01\x0f\x00" + struct.pack(">iqq", 1, 2, 1000) + b"\0",
    ),
    (
        PartitionRecord(
            partition_id=3,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=(1,),
            leader=1,
            leader_epoch=4,
            partition_epoch=5,
            directories=(TOPIC_ID,),
            eligible_leader_replicas=(2,),
        ),
        2,
        b"\x01\x03\x02"
        + struct.pack(">i", 3)
        + TOPIC_ID.bytes
        + struct.pack(">BiiBiBBiii", 3, 1, 2, 2, 1, 1, 1, 1, 4, 5)
        + b"\x02"
        + TOPIC_ID.bytes
        + b"\x01\x01\x05\x02\0\0\0\x02",
    ),
    (
        PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, isr=(), leader=-1),
        0,
        b"\x01\x05\x00" + struct.pack(">i", 3) + TOPIC_ID.bytes + b"\x02\x00\x01\x01\x01\x04\xff\xff\xff\xff",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=-1),
        1,
        b"\x01\x11\x01" + struct.pack(">iq", 1, 2) + b"\x01\x00\x01\xff",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, cordoned_log_dirs=(TOPIC_ID,)),
        3,
        b"\x01\x11\x03" + struct.pack(">iq", 1, 2) + b"\x01\x03\x11\x02" + TOPIC_ID.bytes,
    ),
    (
        UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
        0,
        b"\x01\x01\x00" + struct.pack(">iq", 1, 2) + b"\x00",
    ),
    (ClearElrRecord(topic_name="foo"), 0, b"\x01\x1c\x00\x04foo\x00"),
    (BeginTransactionRecord(name="foo"), 0, b"\x01\x17\x00\x01\x00\x04\x04foo"),
    (BeginTransactionRecord(), 0, b"\x01\x17\x00\x00"),
    (EndTransactionRecord(), 0, b"\x01\x18\x00\x00"),
    (AbortTransactionRecord(reason="foo"), 0, b"\x01\x19\x00\x01\x00\x04\x04foo"),
    (
        RegisterControllerRecord(
            controller_id=7,
            incarnation_id=TOPIC_ID,
            end_points=(ControllerEndpoint(name="CONTROLLER", host="h", port=9093, security_protocol=1),),
            features=(ControllerFeature(name="f", min_supported_version=1, max_supported_version=2),),
        ),
        0,
        b"\x01\x1b\x00"
        + struct.pack(">i", 7)
        + TOPIC_ID.bytes
        + b"\x00"
        + b"\x02\x0bCONTROLLER\x02h"
        + struct.pack(">Hh", 9093, 1)
        + b"\x00\x02\x02f\0\x01\0\x02\0\x00",
    ),
    (
        RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=TOPIC_ID,
            broker_epoch=2,
            end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=65535, security_protocol=0),),
            features=(BrokerFeature(name="f", min_supported_version=1, max_supported_version=2),),
            rack=None,
            fenced=True,
            log_dirs=(TOPIC_ID,),
        ),
        3,
        b"\x01\x00\x03"
        + struct.pack(">ib", 1, 0)
        + TOPIC_ID.bytes
        + struct.pack(">q", 2)
        + b"\x02\x0aPLAINTEXT\x02h\xff\xff\0\0\0"
        + b"\x02\x02f\0\x01\0\x02\0"
        + b"\0\x01\0"
        + b"\x01\x00\x11\x02"
        + TOPIC_ID.bytes,
    ),
]


@pytest.mark.parametrize(("record", "version", "data"), EXAMPLES, ids=[type(each[0]).__name__ for each in EXAMPLES])
def test_records_have_kafkas_bytes(record: Any, version: int, data: bytes) -> None:
    """Are records written as Kafka's schemas say, and read back?"""
    assert data == encode_metadata_record(record, version)
    assert record == decode_metadata_record(data)


def test_version_of_a_cluster_is_written_unless_another_is_told() -> None:
    """Does a record that says more than its first version can survive being written?"""
    record = PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, directories=(TOPIC_ID,), last_known_elr=(1,))

    assert record == decode_metadata_record(encode_metadata_record(record))
    assert encode_metadata_record(record, 2) == encode_metadata_record(record)
    assert encode_metadata_record(NoOpRecord(), 0) == encode_metadata_record(NoOpRecord())


@pytest.mark.parametrize("dirs", [None, (), (TOPIC_ID,)])
def test_cordoned_log_dirs_are_kept(dirs: tuple[UUID, ...] | None) -> None:
    """Do those that shall get nothing new survive, in a version that Kafka before 4.3 does not meet without need?"""
    for record, plain in (
        (RegisterBrokerRecord(broker_id=1, cordoned_log_dirs=dirs), 3),
        (BrokerRegistrationChangeRecord(broker_id=1, cordoned_log_dirs=dirs), 2),
    ):
        written = encode_metadata_record(record)

        assert record == decode_metadata_record(written)
        assert plain + (dirs is not None) == written[2]


@pytest.mark.parametrize("message", load_messages("metadata_records"), ids=lambda message: message.name)
def test_classes_and_schema_agree(message: Message) -> None:
    """Has every class the fields of its schema, and the default a tagged field has when it is not sent?"""
    for name, fields in message.structs.items():
        cls = getattr(metadata_records, name)
        assert set(cls.__struct_fields__) == {field.name for field in fields}
        for field in fields:
            if field.tag is not None:
                empty = () if field.is_array else 0
                assert getattr(cls(), field.name) == (field.default if field.has_default else empty)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x01\x14", id="no version"),
        pytest.param(b"\x00\x14\x00\x00", id="frame version 0"),
        pytest.param(b"\x02\x14\x00\x00", id="frame version 2"),
        pytest.param(b"\x01\x63\x00\x00", id="unknown type"),
        pytest.param(b"\x01\x14\x01\x00", id="unknown version"),
        pytest.param(b"\x01\x14\x00", id="no body"),
        pytest.param(b"\x01\x14\x00\x00\x00", id="something after the body"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Is a damaged or foreign record noticed?"""
    with pytest.raises(MalformedRequest):
        decode_metadata_record(data)
