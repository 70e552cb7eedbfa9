"""Headrace's KafkaConsumer."""

import pytest

from clients.libraries import DEADLINE_S, Confluent, Deadline, Sent, create_topic
from headrace import (
    BadOption,
    ClientFault,
    Closed,
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    NoBroker,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)
from headrace.testing.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]
by_protocol = pytest.mark.parametrize("protocol", ["classic", "consumer"])
LONG_MS = DEADLINE_S * 1000


@pytest.fixture
def consumer(broker):
    """Opens consumers and closes them in the end."""
    live = []

    def opened(*topics, **options) -> KafkaConsumer:
        chosen = {"auto_offset_reset": "earliest", "consumer_timeout_ms": LONG_MS, **options}
        live.append(KafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, **chosen))
        return live[-1]

    yield opened
    for one in live:
        one.close()


def fill(broker, topic, count, *, partitions=1):
    """A topic with numbered records, dealt out to its partitions in turn."""
    create_topic(broker.bootstrap, topic, partitions=partitions, retention_ms="-1")
    records = [Sent(value=b"%d" % n, key=b"k", partition=n % partitions, timestamp_ms=1000 + n) for n in range(count)]
    Confluent.send(broker.bootstrap, topic, records)
    return [TopicPartition(topic, number) for number in range(partitions)]


def take(consumer, count):
    """The next records by iteration."""
    return [next(consumer) for _ in range(count)]


def everything(consumer, count):
    """What comes until nothing comes any more; a busy machine may be silent for so long before all has come."""
    records = list(consumer)
    deadline = Deadline()
    while len(records) < count:
        deadline.check(f"{len(records)} of {count} records")
        records += consumer
    return records


# --- reading


def test_iteration(broker, topic, consumer):
    """Does a consumer without a group iterate over everything, and end when nothing comes for the time it was told?"""
    fill(broker, topic, 30, partitions=3)
    records = everything(consumer(topic, consumer_timeout_ms=2000), 30)

    assert sorted(range(30)) == sorted(int(record.value) for record in records)
    assert [0, 1, 2] == sorted({record.partition for record in records})


def test_a_record(broker, topic, consumer):
    """Does a record have kafka-python's attributes?"""
    create_topic(broker.bootstrap, topic, retention_ms="-1")
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, b"value", key=b"key", headers=[("h", b"1")], timestamp_ms=1234).get(DEADLINE_S)
    record = next(consumer(topic))

    assert (topic, 0, 0, b"key", b"value") == (record.topic, record.partition, record.offset, record.key, record.value)
    assert (1234, 0, [("h", b"1")]) == (record.timestamp, record.timestamp_type, record.headers)
    assert (3, 5, 0) == (record.serialized_key_size, record.serialized_value_size, record.leader_epoch)
    assert TopicPartition(topic, 0) == record.topic_partition
    assert "offset=0" in repr(record)


def test_poll(broker, topic, consumer):
    """Does poll give records by partition, no more than asked for, as soon as there are any?"""
    places = fill(broker, topic, 20, partitions=2)
    one = consumer(topic)
    polls = []
    while sum(map(len, polls)) < 20:
        found = one.poll(LONG_MS, max_records=3)
        assert set(found) <= set(places)
        assert all(record.topic_partition == place for place, records in found.items() for record in records)
        polls.append([record for records in found.values() for record in records])

    assert max(map(len, polls)) <= 3
    assert {} == one.poll(50)
    for place in places:
        offsets = [record.offset for poll in polls for record in poll if record.topic_partition == place]
        assert list(range(10)) == offsets


def test_deserializers(broker, topic, consumer):
    """Are keys and values deserialized, tombstones left alone, and does a bad record fail only its own reader?"""
    create_topic(broker.bootstrap, topic)
    values = [b'{"a":1}', b"not json", None, b"2"]
    Confluent.send(broker.bootstrap, topic, [Sent(value=value, key=b"k") for value in values])
    records = take(consumer(topic, key_deserializer="str", value_deserializer="json"), 4)

    assert ["k"] * 4 == [record.key for record in records]
    assert [{"a": 1}, None, 2] == [records[index].value for index in (0, 2, 3)]
    with pytest.raises(ValueError, match="malformed"):
        records[1].value  # noqa: B018


def test_read_committed(broker, topic, group, consumer):
    """Are aborted records hidden where that is asked for?"""
    create_topic(broker.bootstrap, topic)
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=group) as producer:
        producer.begin_transaction()
        producer.send(topic, b"aborted").get(DEADLINE_S)
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"committed")

    assert b"committed" == next(consumer(topic, isolation_level="read_committed")).value
    assert b"aborted" == next(consumer(topic)).value


# --- where


def test_seek(broker, topic, consumer):
    """Does a seek hold at once: before the first poll, in the middle of a batch, and to both ends?"""
    (place,) = fill(broker, topic, 20)
    one = consumer()
    one.assign([place])
    one.seek(place, 7)
    assert (7, 7) == (one.position(place), next(one).offset)
    one.seek(place, 15)
    assert [15, 16] == [record.offset for record in take(one, 2)]
    one.seek_to_beginning(place)
    assert (0, 0) == (one.position(place), next(one).offset)
    one.seek_to_end()
    assert (20, {}) == (one.position(place), one.poll(100))


def test_seek_in_a_loop(broker, topic, consumer):
    """Does a for loop go on where a seek in its body went?"""
    (place,) = fill(broker, topic, 10)
    one = consumer(topic, consumer_timeout_ms=2000, fetch_max_wait_ms=50)
    seen, deadline = [], Deadline()
    while len(seen) < 5:  # a busy machine may be silent for so long before the first record, or after the seek
        deadline.check(f"{seen}")
        for record in one:
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                one.seek(place, 8)

    assert [0, 1, 2, 8, 9] == seen


def test_position_is_what_the_program_has(broker, topic, consumer):
    """Is the position that of the program and not that of what was fetched ahead?"""
    (place,) = fill(broker, topic, 20)
    one = consumer(topic)
    take(one, 3)

    assert 3 == one.position(place)


def test_pause(broker, topic, consumer):
    """Does a paused partition give nothing, not even what was fetched, and go on where it was?"""
    first, second = fill(broker, topic, 20, partitions=2)
    one = consumer(topic, consumer_timeout_ms=2000, fetch_max_wait_ms=50)
    begun, deadline = next(one, None), Deadline()
    while begun is None:
        deadline.check("the first record")
        begun = next(one, None)
    paused = begun.topic_partition
    one.pause(paused)
    assert {paused} == one.paused()
    rest = everything(one, 10)
    one.resume(paused)
    after = everything(one, 9)

    assert {({first, second} - {paused}).pop()} == {record.topic_partition for record in rest}
    assert list(range(begun.offset + 1, 10)) == [record.offset for record in after]


def test_offsets(broker, topic, consumer):
    """Are beginnings, ends and offsets for times told?"""
    first, second = fill(broker, topic, 9, partitions=2)
    one = consumer()
    found = one.offsets_for_times({first: 1003, second: 99_999})

    assert {first: 0, second: 0} == one.beginning_offsets([first, second])
    assert {first: 5, second: 4} == one.end_offsets([first, second])
    assert {first: OffsetAndTimestamp(2, 1004, 0), second: None} == found
    assert topic in one.topics()
    assert {0, 1} == one.partitions_for_topic(topic)
    assert one.partitions_for_topic("nobody-made-this") is None


@pytest.mark.parametrize("options", [{}, {"group_id": "fresh"}])
@pytest.mark.parametrize("reset", ["none", "latest", "earliest"])
def test_seek_before_the_first_record(broker, topic, consumer, reset, options):
    """Can a program that keeps its offsets itself go to one, whatever is said about where to begin otherwise?"""
    places = fill(broker, topic, 12, partitions=2)
    reader = consumer(auto_offset_reset=reset, **options)
    reader.assign(places)
    reader.seek(places[1], 2)
    reader.pause(places[1])
    reader.seek(places[0], 4)

    assert [(record.partition, record.offset) for record in take(reader, 2)] == [(0, 4), (0, 5)]
    assert reader.paused() == {places[1]}


def test_no_position(broker, topic, consumer):
    """Is a consumer that may not choose a position itself told so?"""
    (place,) = fill(broker, topic, 1)
    one = consumer(auto_offset_reset="none")
    one.assign([place])

    with pytest.raises(ClientFault, match="no position"):
        one.position(place)
    with pytest.raises(ClientFault):
        one.poll(LONG_MS)


# --- groups


@by_protocol
def test_group_goes_on_where_it_was(broker, topic, group, consumer, protocol):
    """Does the next member of a group go on after what the program had taken, not what was fetched (R23, R25)?"""
    create_topic(broker.bootstrap, topic)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"%d" % n) for n in range(20)])
    first = consumer(topic, group_id=group, group_protocol=protocol)
    seen = [record.value for record in take(first, 7)]
    first.close()
    second = consumer(topic, group_id=group, group_protocol=protocol)
    seen += [record.value for record in take(second, 13)]

    assert [b"%d" % n for n in range(20)] == seen


@by_protocol
def test_members_share(broker, topic, group, consumer, protocol):
    """Do two members share the partitions, with a listener hearing of what comes and goes?"""
    places = fill(broker, topic, 4, partitions=4)

    class Listener(ConsumerRebalanceListener):
        def __init__(self):
            self.held = set()

        def on_partitions_assigned(self, assigned):
            self.held |= set(assigned)

        def on_partitions_revoked(self, revoked):
            self.held -= set(revoked)

    members, listeners = [], []
    for _ in range(2):
        members.append(consumer(group_id=group, group_protocol=protocol, max_poll_interval_ms=60_000))
        listeners.append(Listener())
        members[-1].subscribe([topic], listener=listeners[-1])
    while [2, 2] != [len(one.assignment()) for one in members]:
        for one in members:
            one.poll(50)

    assert set(places) == members[0].assignment() | members[1].assignment()
    assert [one.assignment() for one in members] == [listener.held for listener in listeners]
    assert {topic} == members[0].subscription()


def test_seek_in_a_listener(broker, topic, group, consumer):
    """Can a listener choose where reading begins?"""
    fill(broker, topic, 10)
    one = consumer(group_id=group)

    class FromSix(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            for each in assigned:
                one.seek(each, 6)

    one.subscribe([topic], listener=FromSix())

    assert 6 == next(one).offset


def test_commits(broker, topic, group, consumer):
    """Are commits kept: of what was read, of given offsets with notes, and those nobody waits for?"""
    (place,) = fill(broker, topic, 20)
    one = consumer(topic, group_id=group, enable_auto_commit=False)
    assert one.committed(place) is None
    take(one, 4)
    one.commit()
    assert 4 == one.committed(place)
    one.commit({place: OffsetAndMetadata(2, "a note")})
    assert OffsetAndMetadata(2, "a note", -1) == one.committed(place, metadata=True)
    heard = []
    one.commit_async({place: 9}, callback=lambda offsets, error: heard.append((offsets, error))).result(DEADLINE_S)
    assert ([({place: 9}, None)], 9) == (heard, one.committed(place))


def test_auto_commit(broker, topic, group, consumer):
    """Is what the program took committed by itself while it reads?"""
    (place,) = fill(broker, topic, 3)
    one = consumer(topic, group_id=group, auto_commit_interval_ms=50)
    take(one, 3)
    while one.committed(place) != 3:
        assert {} == one.poll(50)


def test_without_a_group(broker, topic, consumer):
    """Is committing without a group refused in a sentence?"""
    fill(broker, topic, 1)

    with pytest.raises(BadOption, match="group_id"):
        consumer(topic).commit()


@pytest.mark.parametrize("has_group", [True, False])
def test_pattern(broker, topic, group, consumer, has_group):
    """Does a pattern choose topics, in a group and without one?"""
    for name in ("a", "b"):
        fill(broker, f"{topic}-{name}", 1)
    one = consumer(group_id=group if has_group else None)
    one.subscribe(pattern=f"{topic}-[ab]$")

    assert [f"{topic}-a", f"{topic}-b"] == sorted(record.topic for record in take(one, 2))
    with pytest.raises(BadOption, match="either topics or a pattern"):
        one.subscribe(["x"], pattern="y")
    one.unsubscribe()
    assert set() == one.assignment()


def test_a_list_in_the_place_of_a_name(topic, consumer):
    """Is a list of topics where names stand one by one refused in a sentence?"""
    with pytest.raises(BadOption, match=r"is not a topic's name\. Give names one by one"):
        consumer([topic])


def test_unsubscribed_and_closed(broker, topic, group, consumer):
    """Can a member that unsubscribed be closed at once, again and again, without waiting for what was revoked?"""
    fill(broker, topic, 1)
    for number in range(5):
        one = consumer(topic, group_id=f"{group}-{number}")
        take(one, 1)
        one.unsubscribe()

        assert set() == one.assignment()
        one.close()


# --- what goes wrong


def test_no_broker():
    """Is a broker that is not there named within the bound?"""
    with pytest.raises(NoBroker, match=r"127\.0\.0\.1:1 within 0\.3 s"):
        KafkaConsumer("t", bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=300)


def test_broker_goes_away(topic):
    """Does a consumer whose broker went away for longer than it was told to bear say so?"""
    with Cluster() as cluster:
        Confluent.send(cluster.bootstrap, topic, [Sent(value=b"x")])
        one = KafkaConsumer(
            topic, bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", default_api_timeout_ms=500
        )
        next(one)
    with pytest.raises(NoBroker):
        next(one)
    one.close()


def test_restart_is_no_end(topic):
    """Does a consumer go on reading when its broker comes back?"""
    with Cluster() as cluster:
        Confluent.send(cluster.bootstrap, topic, [Sent(value=b"before")])
        one = KafkaConsumer(
            topic, bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", reconnect_backoff_max_ms=100
        )
        assert b"before" == next(one).value
        cluster.restart()
        Confluent.send(cluster.bootstrap, topic, [Sent(value=b"after")])
        assert b"after" == next(one).value
        one.close()


def test_closed_consumer(broker, topic, consumer):
    """Is a closed consumer said to be closed, however it is asked?"""
    fill(broker, topic, 1)
    with consumer(topic) as one:
        next(one)
    one.close()

    with pytest.raises(Closed):
        one.poll(10)
    with pytest.raises(Closed):
        next(iter(one))
