"""Files written for Java's clients: what is known, what only Java does, and what nobody knows."""

import pytest

from headrace.client.client_options import gather
from headrace.client.fault import BadOption, UnknownOption
from headrace.client.java_settings import IDLE, is_idle, is_known, notices
from headrace.client.option_table import CONSUMER, PRODUCER

JAVA = """\
bootstrap.servers=localhost:9092
key.serializer=org.apache.kafka.common.serialization.StringSerializer
value.serializer=org.apache.kafka.common.serialization.LongSerializer
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner
metrics.num.samples=3
group.id=trucks
acks=all
"""


def taken(kind, file):
    """What a client of a kind makes of a file."""
    return gather(kind, {}, config_file=file, environment={})


def test_a_java_clients_file_is_taken(tmp_path):
    """Does a file with Java's serializers and partitioner serve a producer and a consumer, without a word?"""
    file = tmp_path / "client.properties"
    file.write_text(JAVA)

    assert "round_robin" == taken(PRODUCER, file).own["partitioner"]
    assert "trucks" == taken(CONSUMER, file).engine["group.id"]


def test_what_only_java_does_is_named_once(tmp_path):
    """Is there one warning that names what nothing comes of, and none of what is empty?"""
    file = tmp_path / "client.properties"
    file.write_text("interceptor.classes=a.B\nconfig.providers.vault.param.x=1\nsecurity.providers=\n")

    line = "Only Java's clients know these, so they are without effect: interceptor.classes, "
    with pytest.warns(UserWarning, match=f"^{line}config.providers.vault.param.x.$"):
        taken(PRODUCER, file)


def test_a_misspelt_setting_is_refused_to_a_program(tmp_path):
    """Is a name in a file that no client has an error with the nearest one?"""
    file = tmp_path / "client.properties"
    file.write_text("interceptor.clases=a.B\nlinger.msec=5\n")

    with pytest.raises(UnknownOption, match=r"producer\. Did you mean interceptor\.classes[?]"):
        taken(PRODUCER, file)


def test_a_key_store_that_only_java_reads(tmp_path):
    """Is a key store of Java's own form refused with the command that converts it, and left alone without TLS?"""
    store = tmp_path / "client.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    given = {"ssl.keystore.location": str(store), "ssl.truststore.location": "gone.jks"}

    with pytest.raises(BadOption, match=r"type JKS, which only Java reads\. Convert it: keytool"):
        gather(PRODUCER, {}, config={**given, "security.protocol": "SSL"}, environment={})
    assert "PLAINTEXT" == gather(PRODUCER, {}, config=given, environment={}).connection().security_protocol


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"acks": "all", "ssl.truststore.type": "JKS", "key.serializer": "a.B"}, []),
        ({"partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"}, []),
        (
            {"partitioner.class": "a.Mine", "acks": "1", "sasl.login.class": "a.B"},
            ["Only Java's clients know these, so they are without effect: partitioner.class, sasl.login.class."],
        ),
        ({"securty.protocol": "SSL"}, ["securty.protocol is not a known setting; did you mean security.protocol?"]),
        (
            {"interceptor.clases": "a.B"},
            ["interceptor.clases is not a known setting; did you mean interceptor.classes?"],
        ),
        ({"xyzzy": "1"}, ["xyzzy is not a known setting."]),
    ],
)
def test_notices(given, lines):
    """Are settings without effect named together, unknown ones each with the nearest, and all others left unsaid?"""
    assert lines == notices(given)


def test_nothing_is_both():
    """Is a setting that a client of ours serves never said to be without effect?"""
    assert set() == {name for name in IDLE if is_known(name)}
    assert is_idle("metrics.context.team")
