"""Requests that are the active controller's to answer, handed on and unpacked."""

from types import SimpleNamespace

import pytest

from headrace.broker.api import Call
from headrace.broker.controller import NotController
from headrace.broker.forwarding import ANONYMOUS, Forwarding, _address
from headrace.broker.handlers import api19_create_topics, api58_envelope
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import RequestHeader, parse_response_header, request_header
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.envelope import EnvelopeRequest
from headrace.wire.messages.metadata import MetadataRequest

CREATE_TOPICS, METADATA = 19, 3
REQUEST = CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),))


def envelope(api_key, version, message):
    """A request inside another."""
    data = request_header(api_key, version, 77, "client") + encode_request(api_key, version, message)
    return EnvelopeRequest(request_data=data, request_principal=ANONYMOUS, client_host_address=bytes(4))


def answered(desk, message):
    """What a broker answers a client that asks it to create topics."""
    header = RequestHeader(CREATE_TOPICS, 7, 9, "client", 0)
    call = Call(desk.broker, SimpleNamespace(listener_name="PLAINTEXT", peer=("127.0.0.1", 5)), header)
    frame = b"".join(desk.run(Forwarding(desk.broker).answer(call, api19_create_topics.API, message, b"")))
    correlation_id, body = parse_response_header(CREATE_TOPICS, 7, memoryview(frame)[4:])
    assert correlation_id == 9
    return decode_response(CREATE_TOPICS, 7, memoryview(frame)[4:], body)


def test_envelope(desk):
    """Is the answer inside the one that the client would have got, its header included?"""
    answer = desk.ask(api58_envelope.API, envelope(CREATE_TOPICS, 7, REQUEST), listener="CONTROLLER")

    assert answer.error_code == 0
    view = memoryview(answer.response_data)
    correlation_id, body = parse_response_header(CREATE_TOPICS, 7, view)
    assert correlation_id == 77
    assert decode_response(CREATE_TOPICS, 7, view, body).topics[0].topic_id == desk.broker.metadata.topics["t"].topic_id


@pytest.mark.parametrize(
    "request_data",
    [
        b"",
        b"\0\1",
        bytes(envelope(METADATA, 12, MetadataRequest(topics=())).request_data),
        bytes(envelope(CREATE_TOPICS, 7, REQUEST).request_data)[:-2],
    ],
    ids=["nothing", "not a header", "not the controller's to answer", "cut short"],
)
def test_envelope_that_makes_no_sense(desk, request_data):
    """Is what cannot be read, or is not to be handed on, refused, and nothing else?"""
    asked = EnvelopeRequest(request_data=request_data, request_principal=None, client_host_address=bytes(4))

    answer = desk.ask(api58_envelope.API, asked, listener="CONTROLLER")

    assert (answer.error_code, answer.response_data) == (ErrorCode.INVALID_REQUEST, None)


def test_envelope_for_another(desk, monkeypatch):
    """Does a node that does not decide, or does so no longer, say so?"""

    async def moved(command):
        raise NotController("moved")

    monkeypatch.setattr(desk.broker.controller, "run", moved)

    answer = desk.ask(api58_envelope.API, envelope(CREATE_TOPICS, 7, REQUEST), listener="CONTROLLER")

    assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


def test_leadership_that_is_lost_meanwhile(desk, monkeypatch):
    """Is a request tried again that lost its controller, and answered once?"""
    run, refusals = desk.broker.controller.run, [NotController("lost")]

    async def reluctant(command):
        if refusals:
            raise refusals.pop()
        return await run(command)

    monkeypatch.setattr(desk.broker.controller, "run", reluctant)

    assert [topic.error_code for topic in answered(desk, REQUEST).topics] == [0]
    assert refusals == []


def test_no_controller_in_time(open_desk, monkeypatch):
    """Does the client hear a timeout at each topic when nobody decides for too long?"""
    desk = open_desk({"request.timeout.ms": "1"})

    async def never(command):
        raise NotController("not me")

    monkeypatch.setattr(desk.broker.controller, "run", never)

    (topic,) = answered(desk, REQUEST).topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.REQUEST_TIMED_OUT)


def test_broken_metadata_log(desk, monkeypatch):
    """Is the reason told at once when this node's metadata log has failed?"""
    fault = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log failed.")
    monkeypatch.setattr(desk.broker.quorum, "_fault", fault)
    (topic,) = answered(desk, REQUEST).topics
    monkeypatch.undo()

    assert (topic.error_code, topic.error_message) == (ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log failed.")


@pytest.mark.parametrize(
    ("host", "packed"), [("127.0.0.1", b"\x7f\0\0\1"), ("::1", bytes(15) + b"\1"), ("nowhere", bytes(4))]
)
def test_addresses(host, packed):
    """Is the client's address told as Kafka's InetAddress has it?"""
    assert _address(host) == packed


def test_principal():
    """Is the principal one that Kafka's own builder reads: version, type, name, no token?"""
    assert ANONYMOUS == b"\0\0" + bytes([5]) + b"User" + bytes([10]) + b"ANONYMOUS" + b"\0" + b"\0"
