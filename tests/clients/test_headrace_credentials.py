"""Headrace's clients and tools with certificates, passwords and tokens, against Apache Kafka itself."""

import asyncio
import os
import subprocess
import sys

import pytest

from certificates import KEY_PASSWORD, Authority
from clients.libraries import DEADLINE_S
from guarded_peer import MECHANISMS, PASSWORD, USER, guarded_peer, token
from headrace import (
    AsyncKafkaAdmin,
    AsyncKafkaConsumer,
    AsyncKafkaProducer,
    BadOption,
    KafkaAdmin,
    KafkaConsumer,
    KafkaProducer,
    NoBroker,
    NotAuthenticated,
)

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

PLAIN_CLIENTS = (KafkaProducer, KafkaConsumer, KafkaAdmin)
# Far longer than a refusal takes: whoever waits for this has not understood it.
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Apache Kafka behind every kind of door."""
    one = guarded_peer(tmp_path_factory.mktemp("guarded"))
    yield one
    one.remove()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An authority nobody knows."""
    return Authority(tmp_path_factory.mktemp("stranger") / "authority")


def at(peer, door, protocol, **more):
    """The options of a client at one door."""
    found = {"bootstrap_servers": peer.at(door), "security_protocol": protocol, "bootstrap_timeout_ms": PATIENCE_MS}
    if protocol.endswith("SSL"):
        found["ssl_cafile"] = str(peer.authority.file)
    return {**found, **more}


def login(mechanism):
    """What proves who we are."""
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauthbearer_token": token()}
    return {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": PASSWORD}


def round_trip(topic, options):
    """What comes back when the three clients create, send and read."""
    with KafkaProducer(**options) as producer:
        producer.send(topic, b"sent").get(DEADLINE_S)
    with KafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
        value = next(consumer).value
    with KafkaAdmin(**options) as admin:
        assert topic in admin.list_topics()
    return value


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logins(peer, topic, mechanism):
    """Do producer, consumer and admin log in by every mechanism, over TLS (R20, R25)?"""
    assert b"sent" == round_trip(topic, at(peer, "GUARDED", "SASL_SSL", **login(mechanism)))


def test_login_without_tls(peer, topic):
    """Is a login without encryption possible too, with the mechanism left out or in small letters?"""
    who = {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    assert b"sent" == round_trip(topic, at(peer, "OPEN", "SASL_PLAINTEXT", **who))
    assert b"sent" == round_trip(topic, at(peer, "OPEN", "SASL_PLAINTEXT", sasl_mechanism="scram-sha-256", **who))


def test_tls_alone(peer, topic):
    """Is TLS enough where the broker does not ask who is there?"""
    assert b"sent" == round_trip(topic, at(peer, "TLS", "SSL"))


def test_certificate_of_ours(peer, topic):
    """Is the client's certificate shown, with its key in a file apart, behind a password, and in Java's one file?"""
    client = peer.client
    certificate = {"ssl_certfile": str(client.certificate)}
    plain = at(peer, "MUTUAL", "SSL", **certificate, ssl_keyfile=str(client.key))
    locked = {"ssl_keyfile": str(peer.authority.locked(client)), "ssl_password": KEY_PASSWORD}
    java = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(client.both)}

    assert b"sent" == round_trip(topic, plain)
    assert b"sent" == round_trip(topic, at(peer, "MUTUAL", "SSL", **certificate, **locked))
    assert b"sent" == round_trip(topic, at(peer, "MUTUAL", "SSL", config=java))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_async_logins(peer, topic, mechanism):
    """Do the asynchronous clients log in as well?"""
    options = at(peer, "GUARDED", "SASL_SSL", **login(mechanism))

    async def work():
        async with AsyncKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"sent")
        async with AsyncKafkaAdmin(**options) as admin:
            assert topic in await admin.list_topics()
        async with AsyncKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            return (await consumer.getone()).value

    assert b"sent" == asyncio.run(asyncio.wait_for(work(), DEADLINE_S))


@pytest.mark.parametrize("kind", PLAIN_CLIENTS)
def test_token_provider(peer, kind):
    """Is a token asked for where one connects, of an object as of a function?"""

    class Provider:
        """As kafka-python's."""

        asked = 0

        def token(self):
            """A new one each time."""
            self.asked += 1
            return token()

    provider = Provider()
    options = at(peer, "GUARDED", "SASL_SSL", sasl_mechanism="OAUTHBEARER")
    with kind(sasl_oauth_token_provider=provider, **options), kind(sasl_oauth_token_provider=token, **options):
        assert provider.asked


def properties(place, peer):
    """A Java client's file: what people have already."""
    place.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={peer.authority.file}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{USER}" password="{PASSWORD}";\n'
    )
    return place


def test_where_credentials_stand(peer, topic, tmp_path, monkeypatch):
    """Are credentials taken from a Java client's file, and from the environment, by every client?"""
    given = {"bootstrap_servers": peer.at("GUARDED")}
    assert b"sent" == round_trip(topic, {**given, "config_file": properties(tmp_path / "client.properties", peer)})

    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", peer.at("GUARDED"))
    monkeypatch.setenv("HEADRACE_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("HEADRACE_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("HEADRACE_SASL_USERNAME", USER)
    monkeypatch.setenv("HEADRACE_SASL_PASSWORD", PASSWORD)
    monkeypatch.setenv("HEADRACE_SSL_CAFILE", str(peer.authority.file))
    assert b"sent" == round_trip(topic, {})


@pytest.mark.parametrize("kind", PLAIN_CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_refused_login(peer, kind, mechanism):
    """Is a wrong password, or a token that has expired, said to be wrong long before the time to connect is up?"""
    wrong = {"sasl_oauthbearer_token": token(lives_s=-60)} if mechanism == "OAUTHBEARER" else {"sasl_password": "wrong"}
    options = at(peer, "GUARDED", "SASL_SSL", **{**login(mechanism), **wrong})

    with pytest.raises(NotAuthenticated, match=r"refused the (login|token): .*(?i:invalid)"):
        kind(**options)


@pytest.mark.parametrize("kind", PLAIN_CLIENTS)
def test_refused_certificates(peer, stranger, kind):
    """Is it said whose certificate is not accepted, and why, long before the time to connect is up?"""
    unknown = stranger.sign("client")
    ours = {"ssl_certfile": str(unknown.certificate), "ssl_keyfile": str(unknown.key)}

    with pytest.raises(NotAuthenticated, match=r"issuer certificate\. Name the authority"):
        kind(**at(peer, "TLS", "SSL", ssl_cafile=str(stranger.file)))
    with pytest.raises(NotAuthenticated, match="not accepted: certificate has expired"):
        kind(**at(peer, "EXPIRED", "SSL"))
    with pytest.raises(NotAuthenticated, match="does not accept our certificate, or wants one"):
        kind(**at(peer, "MUTUAL", "SSL"))
    with pytest.raises(NotAuthenticated, match="does not accept our certificate, or wants one"):
        kind(**at(peer, "MUTUAL", "SSL", **ours))


@pytest.mark.parametrize("kind", PLAIN_CLIENTS)
def test_unusable_files(peer, kind, tmp_path):
    """Is a file that is not there, not PEM, or locked refused before anything is asked, at a terminal too?"""
    client = peer.client
    locked = {"ssl_certfile": str(client.certificate), "ssl_keyfile": str(peer.authority.locked(client))}

    with pytest.raises(BadOption, match=r"ssl_cafile=.*nowhere\.pem cannot be read"):
        kind(**at(peer, "TLS", "SSL", ssl_cafile=str(tmp_path / "nowhere.pem")))
    with pytest.raises(BadOption, match=r"authority\.p12 is not in PEM form. .*openssl pkcs12"):
        kind(**at(peer, "TLS", "SSL", ssl_cafile=str(peer.authority.store())))
    with pytest.raises(BadOption, match="is ssl_password its password"):
        kind(**at(peer, "MUTUAL", "SSL", **locked))
    with pytest.raises(BadOption, match="is ssl_password its password"):
        kind(**at(peer, "MUTUAL", "SSL", **locked, ssl_password="wrong"))


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer])
def test_wrong_doors(peer, kind):
    """Does a client that speaks TLS where there is none, or none where there is, learn it when its time is up?"""
    with pytest.raises(NoBroker, match="answers in TLS"):
        kind(**at(peer, "TLS", "PLAINTEXT", bootstrap_timeout_ms=500))
    with pytest.raises(NoBroker, match="instead of beginning TLS"):
        kind(**at(peer, "OPEN", "SSL", bootstrap_timeout_ms=500))


def tool(*words, given=""):
    """Run one of the tools; what it left."""
    command = [sys.executable, "-m", "headrace.cli", *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_SASL")}
    return subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, timeout=60, env=environment
    )


def test_tools(peer, topic, tmp_path):
    """Do tools on the wire client and on librdkafka take --command-config, and end at once when it is wrong?"""
    good = properties(tmp_path / "client.properties", peer)
    where = ("--bootstrap-server", peer.at("GUARDED"), "--command-config")
    bad = tmp_path / "wrong.properties"
    bad.write_text(good.read_text().replace(PASSWORD, "wrong"))
    bearer = tmp_path / "bearer.properties"
    bearer.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token={token()}\n"
        f"ssl.ca.location={peer.authority.file}\n"
    )

    created = tool("kafka-topics", *where, good, "--create", "--topic", topic)
    assert 0 == created.returncode, created.stderr
    sent = tool("kafka-console-producer", *where, bearer, "--topic", topic, given="by token\n")
    assert 0 == sent.returncode, sent.stderr
    read = tool("kafka-console-consumer", *where, good, "--topic", topic, "--from-beginning", "--max-messages", "1")
    assert "by token" in read.stdout, read.stderr
    for name, *rest in (("kafka-topics", "--list"), ("kafka-console-consumer", "--topic", topic)):
        refused = tool(name, *where, bad, *rest)
        assert 1 == refused.returncode
        assert "refused the login" in refused.stderr + refused.stdout
