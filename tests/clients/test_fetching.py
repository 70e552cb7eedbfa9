"""Reading partitions without a group."""

import asyncio

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.fault import NoBroker
from headrace.client.fetching import Fetcher
from headrace.client.option_table import ADMIN
from headrace.client.producer import KafkaProducer
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError

pytestmark = pytest.mark.clients


@pytest.fixture
def reads(broker, topic):
    """A topic of one partition with three records; asks something of a fetcher."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for n in range(3):
            producer.send(topic, b"%d" % n).get(20)

    def ask(question):
        async def answer():
            options = gather(ADMIN, {"bootstrap_servers": broker.bootstrap}).connection()
            async with Cluster(options) as cluster:
                return await question(Fetcher(cluster))

        return asyncio.run(answer())

    return ask


def test_partition_by_partition(reads, topic):
    """Does one broker's answer hold what can be read beside the errors of what cannot?"""
    here, beyond, nowhere = TopicPartition(topic, 0), TopicPartition(topic, 7), TopicPartition("no-such-topic", 0)

    async def question(fetcher):
        ((leader, _),) = (await fetcher.by_leader([here])).items()
        return await fetcher.fetch_from(leader, {here: 1, beyond: 0, nowhere: 0}, max_wait_ms=0)

    found = reads(question)
    assert [b"1", b"2"] == [record.value for record in found[here].records]
    assert (3, 3) == (found[here].position, found[here].end_offset)
    assert {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} == {found[beyond].code, found[nowhere].code}


def test_first_error_is_raised(reads, topic):
    """Does a read of partitions, whoever leads them, raise the error of one that cannot be read?"""
    with pytest.raises(KafkaError) as error:
        reads(lambda fetcher: fetcher.fetch({TopicPartition(topic, 0): 99}, max_wait_ms=0))

    assert ErrorCode.OFFSET_OUT_OF_RANGE is error.value.code


def test_a_broker_that_is_not_there(reads, topic):
    """Is a leader that is no broker of the cluster said to be none?"""
    with pytest.raises(NoBroker):
        reads(lambda fetcher: fetcher.fetch_from(99, {TopicPartition(topic, 0): 0}, max_wait_ms=0))
