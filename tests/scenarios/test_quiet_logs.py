"""A segment's file that ends in zeros while it grows, from outside: what is in it, and when the zeros go."""

from headrace.records.build import NewRecord, build_batch
from headrace.storage.files import ZEROS_MAX

LATEST = -1
BATCHES = 30


def fill(client, topic):
    for _ in range(BATCHES):
        assert client.produce(topic, build_batch([NewRecord(1, None, b"x" * 20_000)])).error_code == 0


def file_of(cluster, topic):
    return cluster.directory / f"{topic}-0" / f"{0:020d}.log"


def test_a_quiet_log_ends_with_its_records(cluster, wire, topic):
    """Does a log to which nothing is written any more get a file that ends with its records, and go on growing?"""
    client = wire(cluster)
    client.create_topic(topic)
    fill(client, topic)
    file = file_of(cluster, topic)
    growing = file.stat().st_size
    for _ in range(2):
        cluster.call(cluster.broker.housekeeping.rest())
    (partition,) = (one for one in cluster.broker.partitions if one.topic == topic)

    assert growing % ZEROS_MAX == 0
    assert file.stat().st_size == partition.log.size_bytes < growing

    fill(client, topic)

    assert client.list_offset(topic, LATEST).offset == 2 * BATCHES
    assert file.stat().st_size % ZEROS_MAX == 0


def test_a_log_without_room(cluster, wire, topic):
    """Does a topic that wants no room ahead have a file as long as its records while it grows?"""
    client = wire(cluster)
    client.create_topic(topic, segment_preallocate_bytes="0")
    fill(client, topic)
    (partition,) = (one for one in cluster.broker.partitions if one.topic == topic)

    assert file_of(cluster, topic).stat().st_size == partition.log.size_bytes
