"""The connection that blocks, against a real broker."""

from __future__ import annotations

import socket
import threading

import pytest

from headrace.client.blocking_channel import BlockingChannel
from headrace.client.fault import ConnectionEnded, NoBroker, NotServed
from headrace.client.options import connection_options
from headrace.testing import Cluster
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA, GET_TELEMETRY_SUBSCRIPTIONS = 3, 71


@pytest.fixture(scope="module")
def cluster():
    """One broker for all of them."""
    with Cluster() as cluster:
        yield cluster


def dial(port: int, **properties: str) -> BlockingChannel:
    """A channel to a local port."""
    return BlockingChannel("127.0.0.1", port, connection_options(f"127.0.0.1:{port}", properties))


def ask_for(name: str) -> MetadataRequest:
    """A question whose answer shows which one it was."""
    return MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)


def test_questions_sent_ahead_are_answered_in_order(cluster):
    """Do answers come in the order of the questions, and stay readable while the next one arrives?"""
    with dial(cluster.port) as channel:
        for number in range(20):
            channel.send(METADATA, ask_for(f"t{number}"))
        answers = [channel.receive() for _ in range(20)]

        assert [answer.topics[0].name for answer in answers] == [f"t{number}" for number in range(20)]
        assert channel.is_idle


def test_unserved_api_is_named(cluster):
    """Is a question the broker cannot answer refused before it is sent?"""
    with dial(cluster.port) as channel, pytest.raises(NotServed, match="GetTelemetrySubscriptions"):
        channel.version_of(GET_TELEMETRY_SUBSCRIPTIONS)


def test_nobody_there_is_one_sentence():
    """Is a port where nobody listens told as such?"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoBroker, match="Cannot connect"):
        dial(port)


def test_other_protocol_is_noticed():
    """Does an answer in another protocol end the connection with a hint?"""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1_000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionEnded, match="length of an answer"):
            dial(listener.getsockname()[1])
        thread.join()
