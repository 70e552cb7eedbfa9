"""Spark's source and sink and a pipeline, against Apache Kafka that wants TLS and a login."""

import io
import json

import pytest

from guarded_peer import PASSWORD, USER, guarded_peer, token
from headrace import KafkaProducer
from headrace.pipeline.display import LineDisplay
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.file import load_pipeline
from headrace.pipeline.session import Wishes, run_pipeline

pytestmark = pytest.mark.java

COPY = """\
[pipeline]
name = "guarded"
brokers = "BROKERS"
checkpoint = "checkpoint"
[pipeline.properties]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "USER"
"sasl.password" = "PASSWORD"
"ssl.ca.location" = "AUTHORITY"
[source.words]
topic = "guarded_in"
format = "string"
[sink.out]
from = "words"
topic = "guarded_out"
value = "value"
exactly_once = true
"""


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Apache Kafka behind every kind of door."""
    one = guarded_peer(tmp_path_factory.mktemp("guarded"))
    yield one
    one.remove()


def run(spark, peer, place, password, **wishes):
    """The pipeline with a password."""
    words = {"BROKERS": peer.at("GUARDED"), "USER": USER, "PASSWORD": password, "AUTHORITY": str(peer.authority.file)}
    text = COPY
    for word, value in words.items():
        text = text.replace(f'"{word}"', json.dumps(value))
    file = place / "guarded.toml"
    file.write_text(text)
    return run_pipeline(
        load_pipeline(file), Wishes(is_available_now=True, **wishes), LineDisplay(io.StringIO()), session=spark
    )


def test_pipeline_with_credentials(spark, peer, tmp_path, monkeypatch):
    """Does a pipeline read and write by SASL_SSL, exactly once; are its options Spark's; is a wrong password told?"""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with KafkaProducer(bootstrap_servers=peer.bootstrap) as producer:
        for word in (b"one", b"two"):
            producer.send("guarded_in", word).get(60)

    with pytest.raises(PipelineFault, match=r"refused the login: .*invalid credentials"):
        run(spark, peer, tmp_path, "wrong")
    assert 0 == run(spark, peer, tmp_path, "wrong", given={"sasl.password": PASSWORD}), "as --command-config has it"

    options = {
        "kafka.bootstrap.servers": peer.at("GUARDED"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token": token(),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(peer.authority.file),
    }
    rows = spark.read.format("headrace").options(**options).option("subscribe", "guarded_out").load().collect()
    assert {b"one", b"two"} == {bytes(row.value) for row in rows}
