"""The planner's questions, put to a real broker."""

import pytest

from headrace.client.fault import ClientFault, NoBroker
from headrace.client.records import TopicPartition
from headrace.records.build import NewRecord, build_batch
from headrace.spark.catalog import Catalog
from headrace.spark.option_table import source_options
from headrace.spark.positions import EARLIEST, LATEST
from headrace.testing.ports import free_port


@pytest.fixture
def catalog():
    """Opens catalogs, and closes them when the test ends."""
    opened = []

    def make(bootstrap, **options):
        given = {"kafka.bootstrap.servers": bootstrap, "kafkaConsumer.pollTimeoutMs": "20000", **options}
        opened.append(Catalog(source_options(given)))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def fill(wire, cluster, topic, partitions=2, records=3):
    client = wire(cluster)
    client.create_topic(topic, partitions=partitions)
    batch = build_batch([NewRecord(timestamp=1000 * number, value=b"v") for number in range(records)])
    client.produce(topic, bytes(batch))
    return client


def test_what_is_there(shared, wire, topic, catalog):
    """Are partitions, their leaders and their ends found?"""
    fill(wire, shared, topic)
    found = catalog(shared.bootstrap, subscribe=topic)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    assert [first, second] == found.places()
    assert {first: 3, second: 0} == found.latest()
    assert {first: 0, second: 0} == found.find({first: EARLIEST, second: LATEST})
    assert {first: 2} == found.find({first: 1500})
    assert {first: -1} == found.find({first: 99_000})
    assert 1 == found.leader_of(first)
    assert -1 == found.leader_of(TopicPartition("other", 0))


def test_topics_that_are_missing(shared, wire, topic, catalog):
    """Is a topic that is named a fault if it is not there, but not once a query runs?"""
    fill(wire, shared, topic)
    found = catalog(shared.bootstrap, subscribe=f"{topic},{topic}.none")

    with pytest.raises(ClientFault, match=f"Topic '{topic}.none' does not exist. Create it"):
        found.places()
    assert 2 == len(found.latest())
    assert {} == found.find_what_is_there({TopicPartition(f"{topic}.none", 0): EARLIEST})


def test_assigned_partition_that_is_missing(shared, wire, topic, catalog):
    """Is a partition that is assigned and not there a fault?"""
    fill(wire, shared, topic)

    with pytest.raises(ClientFault, match=f"Partition {topic}-7 does not exist"):
        catalog(shared.bootstrap, assign=f'{{"{topic}":[0,7]}}').places()


def test_groups(shared, wire, topic, catalog):
    """Are a group's offsets committed and found, alone and while looking for ends?"""
    fill(wire, shared, topic)
    found = catalog(shared.bootstrap, subscribe=topic)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    assert {} == found.committed(topic, [first, second])
    assert found.commit(topic, {first: 1}) is None
    assert ({first: 3, second: 0}, None) == found.latest_and_commit(topic, {second: 0})
    assert {first: 1, second: 0} == found.committed(topic, [first, second])
    _, problem = found.latest_and_commit(topic, {TopicPartition(f"{topic}.none", 0): 0})
    assert problem is not None


def test_broker_that_restarts(cluster, wire, topic, catalog):
    """Are questions answered by a broker that restarted?"""
    fill(wire, cluster, topic)
    found = catalog(cluster.bootstrap, subscribe=topic)
    before = found.latest()
    cluster.restart()

    assert before == found.latest()
    assert found.commit(topic, before) is None


def test_connection_that_ends(cluster, wire, topic, catalog):
    """Is a question put again if the connection ends while it is answered?"""
    fill(wire, cluster, topic)
    found = catalog(cluster.bootstrap, subscribe=topic)
    cluster.fail_next("ListOffsets", "refuse", times=2)

    assert 3 == found.latest()[TopicPartition(topic, 0)]


def test_no_broker(catalog):
    """Is a broker that is not there not waited for beyond the patience?"""
    with pytest.raises(NoBroker, match="Cannot connect"):
        catalog(f"127.0.0.1:{free_port()}", subscribe="t", **{"kafkaConsumer.pollTimeoutMs": "200"}).latest()
