"""Transactions with a real client, on a broker that restarts and whose requests get lost or come late."""

import contextlib
from itertools import count

import confluent_kafka
import pytest

from clients.libraries import Deadline, create_topic
from coordinator_loading import until_loaded
from headrace.broker.coordinators import transactions
from headrace.broker.faults import Faults
from headrace.model.errors import ErrorCode
from headrace.net.reply import PendingReply
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.clients

NUMBERS = count()
WAIT_S = 20.0


@pytest.fixture
def headrace_settings():
    """Few partitions for a quick start, and timeouts that are looked for often."""
    return {
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "2",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    }


@pytest.fixture
def name(cluster):
    """A topic."""
    return create_topic(cluster.bootstrap, f"transactions-{next(NUMBERS)}")


@pytest.fixture
def producer(cluster):
    """Makes transactional producers that have claimed their id."""

    def make(transactional_id="t", **settings):
        made = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": transactional_id,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
                **settings,
            }
        )
        made.init_transactions(WAIT_S)
        return made

    return make


def send(producer, topic, *values):
    """Write, and wait until it is written."""
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def read(cluster, topic, *, committed=True):
    """All values up to the end that a reader of this isolation sees."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    values, deadline = [], Deadline()
    with contextlib.closing(consumer):
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(0.1)
            deadline.check("the end of the partition")
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                return values
            values.append(message.value().decode())


def state(cluster, transactional_id="t"):
    """Where a transactional id stands."""
    return cluster.ask(
        lambda broker: broker.transactions.shard_for(transactional_id).core.transactions[transactional_id].state.title
    )


def until(cluster, wanted):
    """Wait until the transactional id has come to a state."""
    deadline = Deadline()
    while state(cluster) != wanted:
        deadline.check(wanted)


def test_commit_and_abort(cluster, name, producer):
    """Does a reader of committed records see what was committed, and only that, in order?"""
    writer = producer()
    for number in range(6):
        writer.begin_transaction()
        send(writer, name, f"{number}a", f"{number}b")
        (writer.abort_transaction if number % 2 else writer.commit_transaction)(WAIT_S)

    until(cluster, "CompleteAbort")
    assert read(cluster, name) == ["0a", "0b", "2a", "2b", "4a", "4b"]
    assert len(read(cluster, name, committed=False)) == 12


def test_open_transaction_is_not_read(cluster, name, producer):
    """Does a reader of committed records stop where a transaction is still open?"""
    writer = producer()
    writer.begin_transaction()
    send(writer, name, "open")

    assert read(cluster, name) == []
    assert read(cluster, name, committed=False) == ["open"]
    writer.commit_transaction(WAIT_S)
    until(cluster, "CompleteCommit")
    assert read(cluster, name) == ["open"]


def test_fencing(cluster, name, producer):
    """Does a second producer with the same id end the first one's transaction, and can only the second go on?"""
    old = producer()
    old.begin_transaction()
    send(old, name, "of the old one")

    new = producer()
    new.begin_transaction()
    send(new, name, "of the new one")
    with pytest.raises(confluent_kafka.KafkaException) as refusal:
        old.commit_transaction(WAIT_S)
    new.commit_transaction(WAIT_S)

    assert refusal.value.args[0].fatal()
    until(cluster, "CompleteCommit")
    assert read(cluster, name) == ["of the new one"]


def test_timeout(cluster, name, producer):
    """Is a transaction aborted that takes longer than its producer allowed?"""
    writer = producer(**{"transaction.timeout.ms": 1000})
    writer.begin_transaction()
    send(writer, name, "forgotten")

    until(cluster, "CompleteAbort")

    assert read(cluster, name) == []
    with pytest.raises(confluent_kafka.KafkaException):
        writer.commit_transaction(WAIT_S)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_in_a_transaction(cluster, name, producer, commit):
    """Do offsets that are sent with a transaction become the group's when it commits, and only then?"""
    reader = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    place = confluent_kafka.TopicPartition(name, 0, 7)
    with contextlib.closing(reader):
        writer = producer()
        writer.begin_transaction()
        send(writer, name, "x")
        writer.send_offsets_to_transaction([place], reader.consumer_group_metadata(), WAIT_S)
        (writer.commit_transaction if commit else writer.abort_transaction)(WAIT_S)
        until(cluster, "CompleteCommit" if commit else "CompleteAbort")

        (committed,) = reader.committed([confluent_kafka.TopicPartition(name, 0)], timeout=WAIT_S)

    assert committed.offset == (7 if commit else confluent_kafka.OFFSET_INVALID)


@pytest.mark.parametrize("commit", [True, False])
def test_restart_within_a_transaction(cluster, name, producer, commit):
    """Can a producer go on and end its transaction after the broker was restarted in the middle of it?"""
    writer = producer()
    writer.begin_transaction()
    send(writer, name, "before")
    cluster.restart()
    send(writer, name, "after")
    (writer.commit_transaction if commit else writer.abort_transaction)(WAIT_S)

    until(cluster, "CompleteCommit" if commit else "CompleteAbort")
    assert read(cluster, name) == (["before", "after"] if commit else [])


def test_restart_between_decision_and_markers(cluster, name, producer, monkeypatch):
    """Is a commit that was answered complete after the broker went down before it wrote the markers?"""
    writer = producer()
    writer.begin_transaction()
    send(writer, name, "decided")
    with monkeypatch.context() as patch:
        patch.setattr(transactions, "_finish", _nothing)
        writer.commit_transaction(WAIT_S)
        assert state(cluster) == "PrepareCommit"
        assert read(cluster, name) == []
    cluster.restart()

    until(cluster, "CompleteCommit")
    assert read(cluster, name) == ["decided"]


async def _nothing(*_):
    """Instead of writing markers."""


@pytest.mark.parametrize("kind", ["refuse", "delay", "drop_reply"])
@pytest.mark.parametrize("api", ["EndTxn", "Produce", "InitProducerId", "AddPartitionsToTxn"])
def test_faults_on_the_way(cluster, name, producer, api, kind):
    """Whatever becomes of one of its requests, is what a producer was told of each transaction what readers see?"""
    cluster.fail_next(api, kind, delay_s=0.2)
    writer = producer(**{"socket.timeout.ms": 1000, "retry.backoff.ms": 10})
    expected = []
    for number in range(4):
        writer.begin_transaction()
        writer.produce(name, f"{number}")
        if committed(writer):
            expected.append(f"{number}")

    until(cluster, "CompleteCommit")
    assert read(cluster, name) == expected
    assert "3" in expected
    assert cluster.ask(lambda broker: broker.faults.armed) is False


def committed(writer):
    """Whether a commit succeeded; what did not is aborted, and a producer that cannot go on fails the test."""
    try:
        writer.commit_transaction(WAIT_S)
    except confluent_kafka.KafkaException as failure:
        if not failure.args[0].txn_requires_abort():
            raise
        writer.abort_transaction(WAIT_S)
        return False
    return True


# --- requests that come late, said exactly


class Raw:
    """A producer that says what it is told to."""

    def __init__(self, cluster, client, *, topic):
        self.client = client
        self.topic = topic
        client.ask("FindCoordinator", 4, FindCoordinatorRequest(key_type=1, coordinator_keys=("raw",)))
        until_loaded(cluster, 1, "raw")

    def init(self):
        """Claim the id."""
        request = InitProducerIdRequest(transactional_id="raw", transaction_timeout_ms=60_000)
        answer = self.client.ask("InitProducerId", 5, request)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add(self, identity):
        """Name the partition, as older producers do."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="raw",
            v3_and_below_producer_id=identity[0],
            v3_and_below_producer_epoch=identity[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=(0,)),),
        )
        answer = self.client.ask("AddPartitionsToTxn", 3, request)
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    def added(self, identity):
        """Name the partition, as soon as the last transaction is over."""
        deadline = Deadline()
        while (code := self.add(identity)) == ErrorCode.CONCURRENT_TRANSACTIONS:
            deadline.check("the last transaction is over")
        assert code == 0

    def write(self, identity, sequence):
        """A write's request."""
        record = NewRecord(timestamp=1, key=None, value=b"raw", headers=())
        records = bytes(
            build_batch(
                [record],
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=sequence,
                transactional=True,
            )
        )
        data = TopicProduceData(name=self.topic, partition_data=(PartitionProduceData(index=0, records=records),))
        return ProduceRequest(transactional_id="raw", acks=-1, timeout_ms=1000, topic_data=(data,))

    def written(self, identity, sequence, version):
        """A write's error code."""
        answer = self.client.ask("Produce", version, self.write(identity, sequence))
        return answer.responses[0].partition_responses[0].error_code

    def ended(self, identity, *, commit, version):
        """End the transaction; who to go on as."""
        answer = self.client.ask("EndTxn", version, end_of(identity, commit=commit))
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch


@pytest.fixture
def hold_next(cluster, monkeypatch):
    """Has the next request of an API wait until it is let go."""
    delayed, held = Faults._delayed, []

    def hold(faults, call, api, request, answer, delay_s):
        reply = PendingReply()

        def go():
            answered = delayed(faults, call, api, request, answer, 0.0)
            answered.attach(lambda: reply.send(answered.buffers))

        held.append(go)
        return reply

    def let_go():
        deadline = Deadline()
        while not held:
            deadline.check("the request is there")
        cluster.ask(lambda _: held.pop()())

    def arm(api):
        monkeypatch.setattr(Faults, "_delayed", hold)
        cluster.fail_next(api, "delay")
        return let_go

    return arm


def end_of(identity, *, commit):
    """An EndTxn."""
    return EndTxnRequest(transactional_id="raw", producer_id=identity[0], producer_epoch=identity[1], committed=commit)


@pytest.mark.parametrize("commit", [True, False])
def test_delayed_end(cluster, name, wire, hold_next, commit):
    """Does an EndTxn that was held up decide nothing about the transaction that is open when it arrives? (A16)"""
    raw, late = Raw(cluster, wire(cluster), topic=name), wire(cluster)
    first = raw.init()
    assert raw.written(first, 0, 12) == 0
    let_go = hold_next("EndTxn")
    sent = late.send("EndTxn", 5, end_of(first, commit=commit))
    # The client lost patience and asked again.
    until_met(cluster)
    second = raw.ended(first, commit=True, version=5)
    until_over(cluster)
    assert raw.written(second, 0, 12) == 0

    let_go()
    held_up = late.receive("EndTxn", 5, sent).error_code
    once_more = late.ask("EndTxn", 5, end_of(first, commit=commit)).error_code

    assert (held_up, once_more) == (ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED)
    assert state(cluster, "raw") == "Ongoing"
    raw.ended(second, commit=True, version=5)
    until_over(cluster)
    assert read(cluster, name) == ["raw", "raw"]


@pytest.mark.parametrize(
    ("version", "end_version", "code"),
    [
        (10, 4, ErrorCode.INVALID_TXN_STATE),
        (11, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (12, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_delayed_write(cluster, name, wire, hold_next, version, end_version, code):
    """Is a write refused that was held up until its transaction had ended, so that it holds no reader back? (A17)"""
    raw, late = Raw(cluster, wire(cluster), topic=name), wire(cluster)
    identity = raw.init()
    if version < 12:
        raw.added(identity)
    assert raw.written(identity, 0, version) == 0
    let_go = hold_next("Produce")
    sent = late.send("Produce", version, raw.write(identity, 1))
    until_met(cluster)
    raw.ended(identity, commit=False, version=end_version)
    until_over(cluster)

    let_go()
    held_up = late.receive("Produce", version, sent).responses[0].partition_responses[0].error_code
    once_more = raw.written(identity, 1, version)

    assert (held_up, once_more) == (code, code)
    partition = cluster.ask(lambda broker: broker.partitions.require(name, 0))
    assert partition.last_stable_offset == partition.log.log_end_offset == 2


def until_met(cluster):
    """Wait until a request has met the fault that waits for it."""
    deadline = Deadline()
    while cluster.ask(lambda broker: broker.faults.armed):
        deadline.check("the fault is met")


def until_over(cluster):
    """Wait until the raw producer's transaction is complete."""
    deadline = Deadline()
    while not state(cluster, "raw").startswith("Complete"):
        deadline.check("the transaction is complete")
