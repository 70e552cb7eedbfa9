"""What groups and transactions were told survives the broker's restart, and live clients go on by themselves."""

import os
import time

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from clients.confluent_members import PROTOCOLS, Member, until, until_received, until_share
from clients.libraries import DEADLINE_S, Confluent, DidNotArrive, Sent, admin, create_topic
from clients.quick_groups import QUICK_GROUPS
from headrace.testing.broker_process import BrokerProcess, HeadraceProcess
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def process(tmp_path):
    """A broker process of the test's own."""
    kind = KafkaPeer if os.environ.get("HEADRACE_TEST_BROKER") == "kafka" else HeadraceProcess
    with kind(tmp_path / "broker", settings=QUICK_GROUPS) as running:
        yield running


def killed_and_started(process: BrokerProcess) -> None:
    """End the broker without a warning, and start it on what it left."""
    process.kill()
    process.start()


def offset_of(process: BrokerProcess, group: str, topic: str) -> int:
    """The committed offset of a group in partition 0, asked until the coordinator has loaded."""
    client = admin(process.bootstrap)
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])])
        try:
            return asked[group].result(DEADLINE_S).topic_partitions[0].offset
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable():
                raise
    raise DidNotArrive(f"the offset of {group}")


@pytest.mark.parametrize("protocol", ["range", "cooperative", "consumer"])
def test_live_group_goes_on(process, group, protocol):
    """Does a live group keep its members, its places and its commits across a killed broker (R23)?"""
    topic = create_topic(process.bootstrap, "kept", partitions=2)
    pair = [Member(process.bootstrap, group, [topic], **PROTOCOLS[protocol]) for _ in range(2)]
    with pair[0], pair[1]:
        until_share(pair, topic, 2)
        # Not before: the first to come might have read everything, and left the other nothing to commit.
        Confluent.send(process.bootstrap, topic, [Sent(value=b"%d" % n, partition=n % 2) for n in range(20)])
        until_received(pair, 20)
        for member in pair:
            member.consumer.commit(asynchronous=False)
        killed_and_started(process)
        committed = offset_of(process, group, topic)
        Confluent.send(process.bootstrap, topic, [Sent(value=b"%d" % n, partition=n % 2) for n in range(20, 40)])
        seen = until_received(pair, 40)
        until_share(pair, topic, 2)

    assert committed == 10
    assert [(n % 2, n // 2, b"%d" % n) for n in sorted(range(40), key=lambda n: (n % 2, n))] == [
        (record.partition, record.offset, record.value) for record in seen
    ]


def test_open_transaction_goes_on(process, group):
    """Can a producer commit after the restart what it sent in a transaction before it, and nobody sees it earlier?"""
    topic = create_topic(process.bootstrap, "kept")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": process.bootstrap, "transactional.id": group, "log_level": 2}
    )
    producer.init_transactions(DEADLINE_S)
    for value, ends in (("aborted", "abort"), ("committed", "commit")):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        assert producer.flush(DEADLINE_S) == 0
        getattr(producer, f"{ends}_transaction")(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, "before", partition=0)
    assert producer.flush(DEADLINE_S) == 0

    killed_and_started(process)
    held_back = Member(process.bootstrap, f"{group}-reader", [topic], **PROTOCOLS["range"])
    with held_back:
        until_received([held_back], 1)
        until([held_back], lambda: held_back.held == [(topic, 0)], "the reader is there")
        before = [record.value for record in held_back.records]
        producer.produce(topic, "after", partition=0)
        producer.commit_transaction(DEADLINE_S)
        until_received([held_back], 3)

    assert [b"committed"] == before
    assert [b"committed", b"before", b"after"] == [record.value for record in held_back.records]
