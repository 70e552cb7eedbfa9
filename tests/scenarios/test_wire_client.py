"""Our own client on a real socket: against a broker, against nobody, and against what is no broker."""

import asyncio

import pytest

from headrace.client.cluster import GROUP, Cluster
from headrace.client.fault import ConnectionEnded, NoBroker, NotServed
from headrace.client.options import connection_options
from headrace.model.errors import ErrorCode, KafkaError
from headrace.testing.ports import free_port
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest

CREATE_TOPICS, SASL_HANDSHAKE = 19, 17


def talk(address, work, **properties):
    """Run `work` with a client of the cluster at `address`."""

    async def main():
        async with Cluster(connection_options(address, properties)) as cluster:
            return await work(cluster)

    return asyncio.run(main())


def test_a_topic_is_made_and_seen(headrace_cluster):
    """Do requests and answers in the newest common version reach each other?"""

    async def work(cluster):
        topic = CreatableTopic(name="made", num_partitions=3, replication_factor=1)
        (result,) = (await cluster.ask(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=9000))).topics
        assert result.error_code == 0
        (seen,) = (await cluster.metadata(["made"])).topics
        return len(seen.partitions), list(await cluster.brokers()), await cluster.coordinator_of(GROUP, "g")

    assert talk(headrace_cluster.bootstrap, work) == (3, [1], 1)


def test_many_questions_at_once_get_their_own_answers(headrace_cluster):
    """Are answers matched to questions when many are under way on one connection?"""

    async def work(cluster):
        answers = await asyncio.gather(*(cluster.metadata([f"no-{index}"]) for index in range(50)))
        return [answer.topics[0].name for answer in answers]

    assert talk(headrace_cluster.bootstrap, work) == [f"no-{index}" for index in range(50)]


def test_an_api_that_is_not_served_is_named(headrace_cluster):
    """Does asking for what the broker does not serve end in a sentence, before anything is sent?"""

    async def work(cluster):
        with pytest.raises(NotServed, match="SaslHandshake"):
            await cluster.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"))

    talk(headrace_cluster.bootstrap, work)


def test_nobody_there_is_said_at_once():
    """Does a port where nothing listens give a sentence with the command to type?"""

    async def work(cluster):
        with pytest.raises(NoBroker, match="headrace start"):
            await cluster.any_channel()

    talk(f"127.0.0.1:{free_port()}", work)


def test_a_server_that_is_no_broker_is_not_waited_for():
    """Does something that answers in another protocol end the attempt, and something silent too?"""

    async def main():
        async def shout(reader, writer):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await keep_silent(reader, writer)

        async def keep_silent(reader, writer):
            try:
                await reader.read()
            finally:
                writer.close()

        for behave, fault in ((shout, ConnectionEnded), (keep_silent, NoBroker)):
            server = await asyncio.start_server(behave, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            options = connection_options(f"127.0.0.1:{port}", {"socket.connection.setup.timeout.ms": "300"})
            async with Cluster(options) as cluster:
                with pytest.raises(fault):
                    await cluster.any_channel()
            server.close()
            await server.wait_closed()

    asyncio.run(main())


def test_what_passes_by_itself_is_tried_again(headrace_cluster):
    """Is an attempt repeated while the reason is one that passes, and ended when it is not?"""
    failures = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]

    async def attempt():
        if failures:
            raise KafkaError(failures.pop())
        return "done"

    async def hopeless():
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    async def work(cluster):
        assert await cluster.persist(attempt) == "done"
        with pytest.raises(KafkaError, match="INVALID_REQUEST"):
            await cluster.persist(hopeless)

    talk(headrace_cluster.bootstrap, work)
