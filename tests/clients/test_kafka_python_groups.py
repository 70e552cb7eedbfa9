"""kafka-python in groups and with transactions."""

import queue
import threading
import time
from concurrent.futures import Future

import kafka
import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata

from clients.libraries import DEADLINE_S, Confluent, DidNotArrive, Sent, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative": CooperativeStickyAssignor,
}
by_assignor = pytest.mark.parametrize("assignor", ASSIGNORS)
# A poll that is over before a join is done begins the join again, so polls are long and each member has a thread.
POLL_MS = 1000


class Member:
    """A consumer in a group, polled by a thread of its own."""

    def __init__(self, consumer: kafka.KafkaConsumer) -> None:
        self.records: list = []
        self.held: frozenset = frozenset()
        self._consumer = consumer
        self._tasks: queue.SimpleQueue = queue.SimpleQueue()
        self._ending = False
        self._thread = threading.Thread(target=self._live, name="kafka-python-member")
        self._thread.start()

    def _live(self) -> None:
        while not self._ending:
            found = self._consumer.poll(timeout_ms=100 if self.held else POLL_MS)
            self.records += [record for batch in found.values() for record in batch]
            self.held = frozenset(self._consumer.assignment())
            while not self._tasks.empty():
                future, work = self._tasks.get()
                try:
                    future.set_result(work(self._consumer))
                except Exception as error:  # noqa: BLE001 - handed to the thread that asked
                    future.set_exception(error)
        self._consumer.close()

    def on(self, work):
        """Do something with the consumer on its own thread."""
        future: Future = Future()
        self._tasks.put((future, work))
        return future.result(DEADLINE_S)

    def committed(self, place, **how):
        """The committed offset of a partition."""
        return self.on(lambda consumer: consumer.committed(place, **how))

    def close(self) -> None:
        """Leave the group."""
        self._ending = True
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "it does not end"


@pytest.fixture
def start(broker, group):
    """Starts members of the test's group, and closes them in the end."""
    live = []

    def member(topic: str, assignor: str = "range", **settings) -> Member:
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            auto_offset_reset="earliest",
            retry_backoff_ms=10,
            fetch_max_wait_ms=50,
            heartbeat_interval_ms=100,
            session_timeout_ms=6000,
            **{"enable_auto_commit": False, **settings},
        )
        live.append(Member(consumer))
        return live[-1]

    yield member
    for one in live:
        one.close()


def until(is_so, what: str) -> None:
    """Look again and again until something is so."""
    end = time.monotonic() + DEADLINE_S
    while not is_so():
        if time.monotonic() > end:
            raise DidNotArrive(what)
        time.sleep(0.01)  # the pause between two looks, not the wait itself


def until_share(members, partitions: int) -> None:
    """Wait until they hold all partitions, evenly."""

    def is_so() -> bool:
        held = [member.held for member in members]
        numbers = sorted(place.partition for one in held for place in one)
        return numbers == list(range(partitions)) and {len(one) for one in held} == {partitions // len(members)}

    until(is_so, f"{len(members)} share {partitions}")


@by_assignor
def test_members_come_and_go(broker, topic, start, assignor):
    """Do kafka-python's members share a topic evenly as they come and go (R22)?"""
    create_topic(broker.bootstrap, topic, partitions=6)
    first = start(topic, assignor)
    until_share([first], 6)
    second = start(topic, assignor)
    until_share([first, second], 6)
    third = start(topic, assignor)
    until_share([first, second, third], 6)
    second.close()
    until_share([first, third], 6)


@by_assignor
def test_every_record_once(broker, topic, start, assignor):
    """Does the next member go on after what was committed, without loss or repeat (R23)?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"%d" % n, partition=n % 2) for n in range(20)])
    first = start(topic, assignor)
    until(lambda: len(first.records) >= 20, "the first twenty")
    first.on(lambda consumer: consumer.commit())
    first.close()
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"%d" % n, partition=n % 2) for n in range(20, 40)])
    second = start(topic, assignor)
    until(lambda: len(second.records) >= 20, "the next twenty")

    assert sorted((n % 2, n // 2, b"%d" % n) for n in range(40)) == sorted(
        (record.partition, record.offset, record.value) for record in first.records + second.records
    )


def test_commits(broker, topic, start):
    """Are kafka-python's commits kept, with their notes, asynchronous and automatic ones too?"""
    create_topic(broker.bootstrap, topic, partitions=3)
    places = [kafka.TopicPartition(topic, number) for number in range(3)]
    member = start(topic)
    until_share([member], 3)
    member.on(lambda consumer: consumer.commit({places[0]: OffsetAndMetadata(7, "a note", -1)}))
    done = member.on(lambda consumer: consumer.commit_async({places[1]: OffsetAndMetadata(8, "", -1)}))
    until(lambda: done.is_done, "the commit is answered")

    assert done.succeeded()
    assert OffsetAndMetadata(7, "a note", -1) == member.committed(places[0], metadata=True)
    assert [8, None] == [member.committed(place) for place in places[1:]]


def test_auto_commit(broker, topic, start):
    """Does kafka-python commit by itself while it polls?"""
    create_topic(broker.bootstrap, topic)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"x")] * 3)
    member = start(topic, enable_auto_commit=True, auto_commit_interval_ms=50)

    until(lambda: member.committed(kafka.TopicPartition(topic, 0)) == 3, "it commits")


def test_administration(broker, topic, start, group):
    """Can kafka-python's admin client list, describe and delete the group and see its offsets?"""
    create_topic(broker.bootstrap, topic)
    place = kafka.TopicPartition(topic, 0)
    member = start(topic, client_id="somebody")
    until_share([member], 1)
    member.on(lambda consumer: consumer.commit({place: OffsetAndMetadata(4, "", -1)}))
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        listed = {found["group_id"]: found for found in admin.list_groups()}
        described = admin.describe_groups([group])[group]
        offsets = admin.list_group_offsets([group])[group]
        member.close()
        deleted = admin.delete_groups([group])
        left = [found["group_id"] for found in admin.list_groups()]
    finally:
        admin.close()

    assert listed[group]["protocol_type"] == "consumer"
    assert described["group_state"] == "Stable"
    assert [one["client_id"] for one in described["members"]] == ["somebody"]
    assert offsets[place].offset == 4
    assert deleted == {group: "OK"}
    assert group not in left


@pytest.fixture
def transactional(broker):
    """Opens kafka-python producers with a transactional id."""
    live = []

    def opened(transactional_id: str) -> kafka.KafkaProducer:
        producer = kafka.KafkaProducer(
            bootstrap_servers=broker.bootstrap,
            transactional_id=transactional_id,
            enable_idempotence=True,
            retry_backoff_ms=10,
        )
        producer.init_transactions()
        live.append(producer)
        return producer

    yield opened
    for producer in live:
        producer.close(timeout=5)


def test_transactions(broker, topic, group, transactional, start):
    """Do kafka-python's transactions commit and abort records and offsets together?"""
    create_topic(broker.bootstrap, topic)
    source = create_topic(broker.bootstrap, f"{topic}-in")
    place = kafka.TopicPartition(source, 0)
    member = start(source)
    until_share([member], 1)
    producer = transactional(f"{group}-producer")
    for value, ends, offset in ((b"one", "commit", 3), (b"aborted", "abort", 3), (b"three", "commit", 5)):
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(DEADLINE_S)
        metadata = member.on(lambda consumer: consumer.group_metadata())
        producer.send_offsets_to_transaction({place: OffsetAndMetadata(len(value), "", -1)}, metadata)
        getattr(producer, f"{ends}_transaction")()
        # The markers are written after the answer.
        until(lambda offset=offset: member.committed(place) == offset, f"{offset} is committed")

    read = [
        seen.value for seen in Confluent.read(broker.bootstrap, topic, count=2, **{"isolation.level": "read_committed"})
    ]
    assert [b"one", b"three"] == read


def test_fencing(broker, topic, group, transactional):
    """Is the older of two kafka-python producers with one id shut out?"""
    create_topic(broker.bootstrap, topic)
    old = transactional(group)
    old.begin_transaction()
    old.send(topic, b"old", partition=0).get(DEADLINE_S)
    new = transactional(group)
    new.begin_transaction()
    new.send(topic, b"new", partition=0).get(DEADLINE_S)
    new.commit_transaction()

    with pytest.raises(kafka.errors.KafkaError):
        old.commit_transaction()
    read = Confluent.read(broker.bootstrap, topic, count=1, **{"isolation.level": "read_committed"})
    assert [b"new"] == [seen.value for seen in read]
