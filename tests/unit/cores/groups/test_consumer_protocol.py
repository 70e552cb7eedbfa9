"""Subscriptions and assignments of the classic protocol, as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.groups.consumer_protocol import (
    EmbeddedAssignment,
    MalformedConsumerProtocol,
    Subscription,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
    write_subscription,
)

FULL = Subscription(topics=("bills", "orders"), user_data=b"u", owned={"orders": (0, 2)}, generation_id=7, rack_id="r1")

SUBSCRIPTIONS = {
    0: "000000000002000562696c6c7300066f72646572730000000175",
    1: "000100000002000562696c6c7300066f726465727300000001750000000100066f7264657273000000020000000000000002",
    2: "000200000002000562696c6c7300066f726465727300000001750000000100066f726465727300000002000000000000000200000007",
    3: "000300000002000562696c6c7300066f72646572730000000175"
    "0000000100066f72646572730000000200000000000000020000000700027231",
}
"""`FULL` as Apache Kafka 4.3.1 writes it, by version."""

ASSIGNMENT = "000100000002000562696c6c73000000010000000100066f7264657273000000020000000000000002ffffffff"
"""bills 1, orders 0 and 2 as Apache Kafka 4.3.1 writes it, in version 1."""


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_subscriptions_are_written_as_kafka_does(version):
    """Are the bytes those of Kafka in every version, and read back as far as the version goes?"""
    data = bytes.fromhex(SUBSCRIPTIONS[version])
    read = read_subscription(data)

    assert data == write_subscription(FULL, version=version)
    assert version == version_of(data)
    assert FULL.topics == read.topics
    assert (FULL.owned if version >= 1 else {}) == read.owned
    assert (7 if version >= 2 else -1) == read.generation_id
    assert ("r1" if version >= 3 else None) == read.rack_id


def test_assignments_are_written_as_kafka_does():
    """Are the bytes of an assignment those of Kafka?"""
    data = bytes.fromhex(ASSIGNMENT)
    partitions = {"bills": (1,), "orders": (0, 2)}

    assert data == write_assignment(partitions, version=1)
    assert EmbeddedAssignment(partitions=partitions) == read_assignment(data)


def test_version_of_tomorrow_is_read_as_the_last_known():
    """Is a later version, which may only add fields, read as far as it is known?"""
    data = b"\x00\x09" + bytes.fromhex(SUBSCRIPTIONS[3])[2:] + b"more"

    assert FULL == read_subscription(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xff\xff",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\xff\xff",
    ],
)
def test_other_bytes_are_refused(data):
    """Are bytes that are no subscription refused?"""
    with pytest.raises(MalformedConsumerProtocol):
        read_subscription(data)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    """Do arbitrary bytes never do anything but be read or be refused?"""
    for read in (read_subscription, read_assignment):
        try:
            read(data)
        except MalformedConsumerProtocol:
            continue


@given(end=st.integers(0, len(SUBSCRIPTIONS[3]) // 2 - 1))
def test_cut_bytes_are_refused(end):
    """Is a subscription that was cut off refused wherever it was cut?"""
    with pytest.raises(MalformedConsumerProtocol):
        read_subscription(bytes.fromhex(SUBSCRIPTIONS[3])[:end])
