"""A disk that fills up, fails to flush, or cannot be read: nothing unsafe is acknowledged, and reading goes on."""

import errno
import time

import pytest

from crash.log_reader import Memory, batches_from, records_of
from headrace.model.errors import ErrorCode, StorageFault
from headrace.records.build import NewRecord, build_batch
from headrace.storage.segment import Segment
from wire_client import WireClient, one_fetch

PLACE = ("topic", 0)
NO_FLUSH = {"flush.on.acks.all": "false"}
"""Before a kill, so that what the restart finds is in the page cache and nowhere else."""


def batch_of(value: bytes) -> bytes:
    """One record."""
    return bytes(build_batch([NewRecord(1, None, value, ())]))


def values_in(client: WireClient, place=PLACE) -> list[bytes]:
    """All values that can be read."""
    return [record.value for _, batch in batches_from(client, place, 0) for record in records_of(batch)]


def fill(client: WireClient, value_bytes: int, limit: int) -> list[bytes]:
    """Produce until the disk is full; the values that were acknowledged."""
    acked = []
    for number in range(limit):
        value = b"%d-" % number + b"x" * value_bytes
        result = client.produce("topic", batch_of(value))
        if result.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            return acked
        assert (result.error_code, result.base_offset) == (0, len(acked))
        acked.append(value)
    raise AssertionError("the disk never filled up")


def produce_soon(client: WireClient, topic: str, partition: int) -> int:
    """The error of a produce that is tried again while the partition is not there, as clients do."""
    deadline = time.monotonic() + 20
    while True:
        code = client.produce(topic, batch_of(b"value"), partition=partition).error_code
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or time.monotonic() > deadline:
            return code


@pytest.mark.slow
def test_full_disk(victim, small_disk):
    """Does a broker on a full disk refuse writes, serve reads, and take writes again once there is room?"""
    broker = victim()
    disk = small_disk(broker, megabytes=24)
    filler = disk.directory / "filler"
    filler.write_bytes(b"x" * (8 << 20))
    broker.start()
    with WireClient(broker.port) as client:
        assert client.create_topic("topic", internal_segment_bytes="2000000").error_code == 0
        acked = fill(client, 50_000, 2_000)

        assert values_in(client) == acked, "what was acknowledged is there, and nothing of what was refused"
        assert client.produce("topic", batch_of(b"x" * 50_000)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values_in(client) == acked
        filler.unlink()
        result = client.produce("topic", batch_of(b"room again"))
        assert (result.error_code, result.base_offset) == (0, len(acked))
        assert client.create_topic("another").error_code == 0
        assert values_in(client) == [*acked, b"room again"]
    broker.kill()
    broker.start()
    with WireClient(broker.port) as client:
        assert values_in(client) == [*acked, b"room again"]
    assert len(broker.said("storage_fault")) == 1, "said once, not for each refused request"
    assert len(broker.said("storage_recovered")) == 1
    assert broker.bugs() == []


@pytest.mark.slow
def test_topics_on_a_full_disk(victim, small_disk):
    """Is a topic that finds no room told so, and whole once there is room, with nothing asked again?"""
    broker = victim()
    disk = small_disk(broker, megabytes=24)
    broker.start()
    with WireClient(broker.port) as client:
        assert client.create_topic("topic").error_code == 0
        disk.fill()
        refused = client.create_topic("wanted", partitions=30)
        disk.free()
        if client.describe_topic("wanted").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # Not even its record found room.
            assert client.create_topic("wanted", partitions=30).error_code == 0

        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR, refused
        for partition in range(30):
            assert produce_soon(client, "wanted", partition) == 0
    broker.kill()
    broker.start()
    with WireClient(broker.port) as client:
        assert [values_in(client, ("wanted", partition)) for partition in range(30)] == [[b"value"]] * 30
    assert broker.bugs() == []


def test_full_disk_in_process(cluster, wire):
    """The same with an ordered fault: is a write that found no room wholly undone?"""
    client = wire(cluster)
    client.create_topic("topic")
    client.produce("topic", batch_of(b"before"))
    cluster.disk_full()
    refused = [client.produce("topic", batch_of(b"meanwhile")).error_code for _ in range(3)]
    during = values_in(client)
    cluster.disk_full(full=False)
    after = client.produce("topic", batch_of(b"after"))

    assert refused == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert during == [b"before"]
    assert (after.error_code, after.base_offset) == (0, 1)
    assert values_in(client) == [b"before", b"after"]


def test_failed_flush_is_never_acknowledged(cluster, wire):
    """After a flush failed, is nothing acknowledged from that disk again, by any partition, until a restart?"""
    client = wire(cluster)
    client.create_topic("topic", partitions=2)
    client.create_topic("cached", flush_on_acks_all="false")
    safe = client.produce("topic", batch_of(b"safe"))
    cluster.fail_next_fsync()
    failed = client.produce("topic", batch_of(b"lost, perhaps"))
    # The disk would take the next flush: the pages it failed to write are gone all the same.
    later = [
        client.produce(topic, batch_of(b"later"), partition=index) for topic, index in (("topic", 0), ("topic", 1))
    ]
    cached = client.produce("cached", batch_of(b"later"))
    readable = values_in(client)
    creation = client.create_topic("new")

    assert (safe.error_code, safe.base_offset) == (0, 0)
    assert failed.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [result.error_code for result in (*later, cached)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert readable == [b"safe"]
    assert creation.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_lone_broker_without_disks_serves_readers(cluster, wire):
    """Does a broker that is alone keep the loss to itself, so that it leads on for its readers?"""
    client = wire(cluster)
    client.create_topic("topic")
    client.produce("topic", batch_of(b"safe"))
    cluster.fail_next_fsync()
    client.produce("topic", batch_of(b"open"))
    told = cluster.ask(lambda broker: broker.membership._heartbeat().offline_log_dirs)

    assert () == told
    assert [False] == cluster.ask(lambda broker: [log_dir.online for log_dir in broker.store.log_dirs])
    assert [b"safe"] == values_in(client)


def test_topic_deleted_under_a_flush(cluster, wire):
    """Does a flush that fails because its topic was deleted meanwhile harm nothing else?"""
    client = wire(cluster)
    client.create_topic("topic")
    client.create_topic("other")
    partition = cluster.ask(lambda broker: broker.partitions.find(("topic", 0)))
    client.delete_topic("topic")
    cluster.ask(lambda broker: partition.on_flush_failed(StorageFault("topic-0 is deleted")))

    assert client.produce("other", batch_of(b"value")).error_code == 0


def test_restart_after_a_failed_flush(cluster, wire):
    """Does a restart make the disk usable again, with all that was acknowledged?"""
    client = wire(cluster)
    client.create_topic("topic")
    client.produce("topic", batch_of(b"safe"))
    cluster.fail_next_fsync()
    client.produce("topic", batch_of(b"open"))
    cluster.restart()
    client = wire(cluster)
    result = client.produce("topic", batch_of(b"after"))

    assert result.error_code == 0
    assert values_in(client) in ([b"safe", b"after"], [b"safe", b"open", b"after"])


def test_failed_flush_of_metadata(cluster, wire):
    """Is a topic whose record could not be flushed not acknowledged, and whole or absent after a restart?"""
    client = wire(cluster)
    cluster.fail_next_fsync()
    refused = client.create_topic("topic", partitions=3)
    again = client.create_topic("other")
    cluster.restart()
    described = wire(cluster).describe_topic("topic")

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert again.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or len(described.partitions) == 3


def test_unreadable_segment_is_an_error_of_its_partition(cluster, wire, monkeypatch):
    """Is a disk that cannot be read told as KAFKA_STORAGE_ERROR, to one who waited as to one who asks?"""
    client = wire(cluster)
    client.create_topic("topic", partitions=2)
    for partition in range(2):
        client.produce("topic", batch_of(b"value"), partition=partition)
    whole = Segment.view

    def view(self, position, size):
        if self.directory.endswith("topic-0"):
            raise OSError(errno.EIO, "Input/output error")
        return whole(self, position, size)

    waiting = client.send("Fetch", 12, one_fetch("topic", 1, max_wait_ms=20_000))
    monkeypatch.setattr(Segment, "view", view)
    wire(cluster).produce("topic", batch_of(b"wake up"))
    (answered,) = client.receive("Fetch", 12, waiting).responses
    asked = client.fetch("topic", 0)
    other = client.fetch("topic", 0, partition=1)

    assert answered.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert asked.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [record.value for record in records_of(other.records)] == [b"value"]


def flush_from_now_on(broker) -> None:
    """Have the next start flush what it acknowledges."""
    text = broker.properties.read_text()
    broker.properties.write_text(text.replace("flush.on.acks.all=false", "flush.on.acks.all=true"))


@pytest.mark.slow
def test_retry_after_a_kill_is_safe_when_acknowledged(victim, image):
    """A batch outlives kill -9 in the page cache; its retry is acknowledged: does it outlive a power cut then?"""
    broker = victim(**NO_FLUSH)
    disk = image(broker, megabytes=64)
    broker.start()
    with WireClient(broker.port) as client:
        assert client.create_topic("topic").error_code == 0
        producer_id, epoch = client.new_producer_id()
        batch = idempotent_batch(producer_id, epoch)
        assert client.produce("topic", batch).error_code == 0
    broker.kill()
    flush_from_now_on(broker)
    broker.start()
    with WireClient(broker.port) as client:
        again = client.produce("topic", batch)
    broker.freeze()
    disk.cut_power()
    broker.kill()
    disk.unmount()
    disk.mount()
    broker.start()
    with WireClient(broker.port) as client:
        found = values_in(client)

    assert (again.error_code, again.base_offset) == (0, 0)
    assert found == [b"value"]


def idempotent_batch(producer_id: int, epoch: int) -> bytes:
    """The first batch of an idempotent producer."""
    records = [NewRecord(1, None, b"value", ())]
    return bytes(build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=0))


@pytest.mark.slow
def test_what_was_read_after_a_kill_outlives_a_power_cut(victim, image):
    """A consumer read what a kill left in the page cache: can a power cut still take it, and give its offset away?"""
    broker = victim(**NO_FLUSH)
    disk = image(broker, megabytes=64)
    broker.start()
    memory = Memory([PLACE])
    with WireClient(broker.port) as client:
        assert client.create_topic("topic").error_code == 0
        assert client.produce("topic", batch_of(b"value")).error_code == 0
    broker.kill()
    flush_from_now_on(broker)
    broker.start()
    with WireClient(broker.port) as client:
        assert len(list(memory.compare(client, PLACE))) == 1
    broker.freeze()
    disk.cut_power()
    broker.kill()
    disk.unmount()
    disk.mount()
    broker.start()
    with WireClient(broker.port) as client:
        list(memory.compare(client, PLACE))
