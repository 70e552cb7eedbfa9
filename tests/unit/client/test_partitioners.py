"""Partitions chosen here are those Java's producer chooses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from headrace.client.partitioners import RoundRobin, murmur2, partition_of

# What org.apache.kafka.common.utils.Utils.murmur2 gives, as Kafka's own test has it.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", JAVA)
def test_hash_is_javas(key):
    """Is the hash of a key the one Java computes?"""
    assert JAVA[key] & 0xFFFFFFFF == murmur2(key)


@given(st.binary(max_size=40), st.integers(1, 100))
def test_hash_is_kafka_pythons(key, partitions):
    """Does kafka-python compute the same for any key?"""
    expected = kafka_python_murmur2(key) & 0xFFFFFFFF

    assert expected == murmur2(key)
    assert (expected & 0x7FFFFFFF) % partitions == partition_of(key, partitions)


def test_round_robin():
    """Do records without a key take turns, and those with one stay where Java puts them?"""
    choose = RoundRobin()

    assert [0, 1, 2, 0] == [choose(None, (0, 1, 2), (0, 1, 2)) for _ in range(4)]
    assert {partition_of(b"abc", 3)} == {choose(b"abc", (0, 1, 2), (0,)) for _ in range(4)}
    assert 2 == choose(None, (0, 1, 2), (2,))
