"""Options from arguments, dictionaries, files and the environment, in everybody's spelling."""

import math

import confluent_kafka
import pytest

from headrace.client.client_options import gather
from headrace.client.fault import BadOption, UnknownOption
from headrace.client.option_table import CONSUMER, ENGINE_NAMES, OPTIONS, PRODUCER

NO_ENVIRONMENT: dict[str, str] = {}


def producer(**arguments):
    """A producer's options from arguments alone."""
    return gather(PRODUCER, arguments, environment=NO_ENVIRONMENT)


def consumer(**arguments):
    """A consumer's options from arguments alone."""
    return gather(CONSUMER, arguments, environment=NO_ENVIRONMENT)


@pytest.mark.parametrize(
    ("given", "engine", "value"),
    [
        ({"bootstrap_servers": ["a:1", "b:2"]}, "bootstrap.servers", "a:1,b:2"),
        ({"acks": -1}, "acks", "all"),
        ({"acks": 0}, "acks", "0"),
        ({"compression_type": "ZSTD"}, "compression.type", "zstd"),
        ({"retries": math.inf}, "message.send.max.retries", 2**31 - 1),
        ({"buffer_memory": 33554432}, "queue.buffering.max.kbytes", 32768),
        ({"sasl_plain_username": "alice"}, "sasl.username", "alice"),
        ({"ssl_check_hostname": False}, "ssl.endpoint.identification.algorithm", "none"),
        ({"security_protocol": "sasl_ssl"}, "security.protocol", "SASL_SSL"),
    ],
)
def test_producers_options_in_the_engines_words(given, engine, value):
    """Is an option of kafka-python's handed to the engine under its name there?"""
    assert value == producer(**given).engine[engine]


@pytest.mark.parametrize(
    ("given", "engine", "value"),
    [
        ({"auto_offset_reset": "none"}, "auto.offset.reset", "error"),
        ({"fetch_max_wait_ms": 50}, "fetch.wait.max.ms", 50),
        ({"group_protocol": "CONSUMER"}, "group.protocol", "consumer"),
        (
            {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
            "partition.assignment.strategy",
            "cooperative-sticky",
        ),
        (
            {"partition_assignment_strategy": ["range", "roundrobin"]},
            "partition.assignment.strategy",
            "range,roundrobin",
        ),
    ],
)
def test_consumers_options_in_the_engines_words(given, engine, value):
    """Is the same so for consumers?"""
    assert value == consumer(**given).engine[engine]


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        (PRODUCER, "bootstrap_server", "bootstrap_servers"),
        (PRODUCER, "linger", "linger_ms"),
        (CONSUMER, "auto_offset_rest", "auto_offset_reset"),
        (CONSUMER, "session.timeout.msec", "session.timeout.ms"),
        (PRODUCER, "queue.buffering.max.mesages", "queue.buffering.max.messages"),
    ],
)
def test_unknown_option_names_the_nearest(kind, name, meant):
    """Does a misspelt option name the one that was meant, as a ValueError too?"""
    with pytest.raises(UnknownOption, match=f"{name} is no option of a {kind}. Did you mean {meant}[?]") as caught:
        gather(kind, {}, config={name: 1}, environment=NO_ENVIRONMENT)

    assert isinstance(caught.value, ValueError)


def test_option_of_the_other_client():
    """Is an option of consumers refused to a producer by name, but left aside in a file that both share?"""
    with pytest.raises(UnknownOption, match="It is one of a consumer"):
        producer(group_id="g")


def test_what_is_nearer_to_the_call_wins(tmp_path):
    """Do arguments come before config, config before the file, and the file before the environment?"""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=file\nacks=1\nsasl.username=file\ngroup.id=g\n")
    environment = {
        "HEADRACE_BOOTSTRAP_SERVERS": "environment:1",
        "HEADRACE_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "HEADRACE_SASL_PASSWORD": "secret",
        "HEADRACE_SASL_MECHANISM": "",
    }

    found = gather(
        PRODUCER,
        {"client_id": "argument", "linger_ms": None},
        config={"client.id": "config", "acks": "all"},
        config_file=file,
        environment=environment,
    ).engine

    assert ("argument", "all", "file:1") == (found["client.id"], found["acks"], found["bootstrap.servers"])
    assert ("SASL_PLAINTEXT", "file", "secret") == (
        found["security.protocol"],
        found["sasl.username"],
        found["sasl.password"],
    )
    assert not {"linger.ms", "group.id"} & set(found)
    assert "PLAIN" == found["sasl.mechanism"], "an empty variable says nothing"


def test_credentials_reach_the_wire_client():
    """Do user, password and protocol, also from Java's JAAS line, arrive at the client that speaks by itself?"""
    line = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="bob" password="s3cret";'
    found = gather(
        "admin",
        {},
        config={"sasl.jaas.config": line, "security.protocol": "SASL_SSL", "request.timeout.ms": "1500"},
        environment=NO_ENVIRONMENT,
    ).connection()

    assert ("bob", "s3cret", "SASL_SSL", 1.5) == (
        found.sasl_username,
        found.sasl_password,
        found.security_protocol,
        found.request_timeout_s,
    )


@pytest.mark.parametrize(("given", "waits_ms"), [({}, 10), ({"fetch.queue.backoff.ms": 700}, 700)])
def test_a_full_queue_is_looked_at_soon(given, waits_ms):
    """Does a consumer fetch again soon after its queue was full, unless it is told to wait longer?"""
    assert gather(CONSUMER, {}, config=given, environment={}).engine["fetch.queue.backoff.ms"] == waits_ms


def test_idempotence_goes_with_acks():
    """Is idempotence on by itself only where it can be, and a contradiction refused?"""
    assert producer().engine["enable.idempotence"] is True
    assert producer(acks=1).engine["enable.idempotence"] is False
    with pytest.raises(BadOption, match="enable_idempotence cannot be with acks=1"):
        producer(acks=1, enable_idempotence=True)


@pytest.mark.parametrize("given", [{"acks": "7"}, {"request_timeout_ms": "soon"}, {"buffer_memory": "much"}])
def test_bad_values(given):
    """Is a value that cannot be refused with the option's name?"""
    with pytest.raises(BadOption, match=next(iter(given))):
        producer(**given)


def test_missing_file(tmp_path):
    """Is a file that is not there named?"""
    with pytest.raises(BadOption, match=r"nowhere\.properties"):
        gather(PRODUCER, {}, config_file=tmp_path / "nowhere.properties", environment=NO_ENVIRONMENT)


def test_the_engine_knows_every_name_in_the_table():
    """Does librdkafka know every name we hand it?"""
    callbacks = {"oauth_cb"}
    names = {row.engine for row in OPTIONS.values() if row.engine} | ENGINE_NAMES
    unknown = set()
    for name in names - callbacks:
        try:
            confluent_kafka.Consumer({"group.id": "g", "log_level": 0, name: "\x01"})
        except confluent_kafka.KafkaException as error:
            if "No such configuration property" in str(error):
                unknown.add(name)

    assert set() == unknown


def test_a_small_fetch_is_no_contradiction():
    """May a consumer's fetch_max_bytes be smaller than what librdkafka's producers may send?"""
    assert 5000 == consumer(fetch_max_bytes="5000").engine["message.max.bytes"]
    assert "message.max.bytes" not in consumer(fetch_max_bytes=2_000_000).engine
