"""Requests of a transaction that arrive after it: what a late EndTxn or Produce can do, by the protocol of its client.

A client that got no answer sends its EndTxn again, and the network may deliver the first one when the next transaction
has begun. Since KIP-890's second part the epoch rises with every transaction, so the late one is refused. An older
client has the same epoch all the time: there the late EndTxn ends the transaction that happens to be open, in Apache
Kafka too. What holds then is that nothing hangs and that no batch gets in behind it unnoticed.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from crash.exactly_once import BROKER_SETTINGS
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.testing.kafka_jars import PeerUnavailable, kafka_jars
from headrace.testing.peer import KafkaPeer
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire_client import WireClient

pytestmark = pytest.mark.slow

RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # what CONCURRENT_TRANSACTIONS is to a producer
    ErrorCode.NOT_LEADER_OR_FOLLOWER,  # of a topic that is just being made
}
VERSIONS = {1: {"Produce": 11, "EndTxn": 4}, 2: {"Produce": 12, "EndTxn": 5}}
"""What a client of each transaction version speaks."""


@pytest.fixture(scope="module", params=["headrace", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.long])])
def broker_port(request):
    """Headrace, and Apache Kafka as the judge of what is expected here."""
    if request.param == "headrace":
        cluster = request.getfixturevalue("headrace_session_cluster")
        yield cluster.port
        return
    try:
        kafka_jars()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    with KafkaPeer(request.getfixturevalue("tmp_path_factory").mktemp("kafka"), settings=BROKER_SETTINGS) as broker:
        yield broker.port


@dataclass
class Transactor:
    """A transactional producer of which every request is said by the test."""

    client: WireClient
    topic: str
    name: str
    version: int
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0

    def init(self) -> None:
        """Take the transactional id."""
        self._ask("FindCoordinator", 4, FindCoordinatorRequest(key_type=1, coordinator_keys=(self.name,)))
        answer = self._ask(
            "InitProducerId", 5, InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        )
        self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def begin(self) -> None:
        """What an older client says before it writes; a newer one says nothing."""
        if self.version == 1:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=(0,)),),
            )
            answer = self._ask("AddPartitionsToTxn", 3, request)
            (topic,) = answer.results_by_topic_v3_and_below
            assert topic.results_by_partition[0].partition_error_code == 0

    def write(self, value: bytes, *, epoch: int | None = None, sequence: int | None = None) -> ErrorCode:
        """Write one record; what came of it."""
        batch = build_batch(
            [NewRecord(1, None, value, ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=self.sequence if sequence is None else sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=0, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=(TopicProduceData(name=self.topic, partition_data=(data,)),),
        )
        answer = self._ask("Produce", VERSIONS[self.version]["Produce"], request)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        self.sequence += code is ErrorCode.NONE
        return code

    def ending(self, *, commit: bool) -> EndTxnRequest:
        """The request that would end the transaction now."""
        return EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )

    def end(self, request: EndTxnRequest) -> ErrorCode:
        """Send it; what came of it."""
        answer = self._ask("EndTxn", VERSIONS[self.version]["EndTxn"], request)
        if self.version == 2 and answer.error_code == 0:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return ErrorCode(answer.error_code)

    def _ask(self, api: str, version: int, request: Any) -> Any:
        while True:
            answer = self.client.ask(api, version, request)
            if not set(_codes(answer)) & RETRIABLE:
                return answer


def _codes(answer: Any) -> list[int]:
    """The codes by which a client is told to come again."""
    found = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "results_by_topic_v3_and_below", ()):
        found += [partition.partition_error_code for partition in topic.results_by_partition]
    found += [each.error_code for each in getattr(answer, "coordinators", ())]
    for topic in getattr(answer, "responses", ()):
        found += [partition.error_code for partition in topic.partition_responses]
    return found


@pytest.fixture
def transactor(broker_port, topic, wire):
    """Makes a producer of a transaction version, on a topic of the test's own."""

    def make(version: int) -> Transactor:
        client = wire(broker_port)
        assert client.create_topic(topic).error_code == 0
        while client.describe_topic(topic).error_code:  # Kafka's brokers learn of it a moment later
            pass
        made = Transactor(client, topic, f"id-{topic}", version)
        made.init()
        return made

    return make


def is_hanging(client: WireClient, topic: str) -> bool:
    """Whether a transaction is open on the topic, or its last stable offset is not its end."""
    asked = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),))
    (described,) = client.ask("DescribeProducers", 0, asked).topics
    opened = any(each.current_txn_start_offset >= 0 for each in described.partitions[0].active_producers)
    ends = []
    for level in (0, 1):
        latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=level, topics=(ListOffsetsTopic(name=topic, partitions=(latest,)),)
        )
        ends.append(client.ask("ListOffsets", 9, request).topics[0].partitions[0].offset)
    return opened or ends[0] != ends[1]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_late_end_of_a_newer_client(transactor, commit):
    """Is the EndTxn of the transaction before refused, and the open one ended by its own alone?"""
    producer = transactor(2)
    assert producer.write(b"first") is ErrorCode.NONE
    first = producer.ending(commit=commit)
    assert producer.end(first) is ErrorCode.NONE
    assert producer.write(b"second") is ErrorCode.NONE

    late = producer.client.ask("EndTxn", 5, first)

    # The same EndTxn again is taken for a retry as long as the next transaction is not known; here it is.
    assert late.error_code in {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
    assert is_hanging(producer.client, producer.topic), "the second transaction is still open"
    assert producer.end(producer.ending(commit=True)) is ErrorCode.NONE
    wait_until_whole(producer)


def test_late_write_of_a_newer_client(transactor):
    """Is a batch refused that arrives after the end of its transaction, so that it opens none of its own?"""
    producer = transactor(2)
    assert producer.write(b"first") is ErrorCode.NONE
    before = producer.epoch
    assert producer.end(producer.ending(commit=False)) is ErrorCode.NONE
    wait_until_whole(producer)

    assert producer.write(b"late", epoch=before, sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    wait_until_whole(producer)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_late_end_of_an_older_client(transactor, commit):
    """Does a late EndTxn end the wrong transaction of an older client, as in Kafka, and does nothing hang after it?"""
    producer = transactor(1)
    producer.begin()
    assert producer.write(b"first") is ErrorCode.NONE
    late = producer.ending(commit=commit)
    assert producer.end(late) is ErrorCode.NONE
    producer.begin()
    assert producer.write(b"second") is ErrorCode.NONE

    assert producer.end(late) is ErrorCode.NONE, "it cannot be told from one that is meant"

    wait_until_whole(producer)
    behind = producer.write(b"behind")
    assert behind is ErrorCode.TRANSACTION_ABORTABLE, "verification keeps it from opening a transaction of its own"
    expected = ErrorCode.INVALID_TXN_STATE if not commit else ErrorCode.NONE
    assert producer.end(producer.ending(commit=True)) is expected, "an abort is told to the client; a commit is not"
    assert not is_hanging(producer.client, producer.topic)


def test_late_write_of_an_older_client(transactor):
    """Is a batch refused that arrives after the end of its transaction, so that nothing hangs (KIP-890, first part)?"""
    producer = transactor(1)
    producer.begin()
    assert producer.write(b"first") is ErrorCode.NONE
    assert producer.end(producer.ending(commit=True)) is ErrorCode.NONE
    wait_until_whole(producer)  # before its marker is written, a batch is still part of the transaction

    assert producer.write(b"late") is ErrorCode.TRANSACTION_ABORTABLE
    wait_until_whole(producer)


@pytest.mark.parametrize("version", [1, 2])
def test_late_requests_of_a_zombie(transactor, version):
    """Is everything refused that a producer sends after another has taken its place, whatever it speaks?"""
    producer = transactor(version)
    producer.begin()
    assert producer.write(b"first") is ErrorCode.NONE
    end = producer.ending(commit=True)
    zombie = producer.epoch
    producer.init()

    assert producer.epoch > zombie
    assert producer.write(b"late", epoch=zombie, sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(end) in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    wait_until_whole(producer)


def wait_until_whole(producer: Transactor) -> None:
    """Markers are written after the answer; once a transaction can begin again, they are there."""
    while is_hanging(producer.client, producer.topic):
        producer.client.describe_topic(producer.topic)
