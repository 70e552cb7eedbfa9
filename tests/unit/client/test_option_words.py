"""What librdkafka refuses, in the words of the person who wrote the options."""

import pytest

from headrace import BadOption, KafkaConsumer, KafkaProducer
from headrace.client.option_words import Typed, refused

NOBODY = {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 1}


@pytest.mark.parametrize(
    ("sentence", "given"),
    [
        ("linger_ms='soon' is not a value it can have.", {"linger_ms": "soon"}),
        ("linger_ms=-5 is outside of its range, 0..900000.", {"linger_ms": -5}),
        ("max_request_size=5 is outside of its range, 1000..1000000000.", {"max_request_size": 5}),
        ("max_batch_size=-1 is outside of its range, 1..2147483647.", {"max_batch_size": -1}),
        ("retries=-1 is outside of its range, 0..2147483647.", {"retries": -1}),
        ("max.request.size=5 is outside of its range, 1000..1000000000.", {"config": {"max.request.size": 5}}),
        ("message.max.bytes=5 is outside of its range, 1000..1000000000.", {"config": {"message.max.bytes": 5}}),
        ("delivery_timeout_ms must be greater than linger_ms.", {"linger_ms": 2000, "delivery_timeout_ms": 1000}),
        ("delivery.timeout.ms must be greater than linger_ms.", {"config": {"delivery.timeout.ms": 1}, "linger_ms": 9}),
        (
            "max_in_flight_requests_per_connection must be set <= 5 when enable_idempotence is true.",
            {"max_in_flight_requests_per_connection": 10},
        ),
        (
            "compression_type='zip' is not a value it can have. Use one of none, gzip, snappy, lz4, zstd.",
            {"compression_type": "zip"},
        ),
        (
            "security_protocol='TLS' is not a value it can have. Use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.",
            {"security_protocol": "TLS"},
        ),
        ("max.block.ms='x' is not a number. Give milliseconds.", {"config": {"max.block.ms": "x"}}),
        (
            "value.serializer='x.Avro' is no serializer. Use a function, or one of bytes, str, json.",
            {"config": {"value.serializer": "x.Avro"}},
        ),
        ("ssl_cafile=gone.pem cannot be read: No such file or directory.", {"ssl_cafile": "gone.pem"}),
        (
            "ssl.truststore.location=gone.jks cannot be read: No such file or directory.",
            {"config": {"ssl.truststore.location": "gone.jks"}},
        ),
    ],
)
def test_a_producers_refusal_names_what_was_typed(sentence, given):
    """Does the refusal of a value, or of two options together, name them as they were written?"""
    uses_tls = "gone" in str(given)
    with pytest.raises(BadOption) as caught:
        KafkaProducer(**NOBODY, **given, **({"security_protocol": "SSL"} if uses_tls else {}))

    assert sentence == str(caught.value)


@pytest.mark.parametrize(
    ("sentence", "given"),
    [
        ("fetch_max_wait_ms=-1 is outside of its range, 0..300000.", {"fetch_max_wait_ms": -1}),
        ("max_partition_fetch_bytes=0 is outside of its range, 1..1000000000.", {"max_partition_fetch_bytes": 0}),
        (
            "max_poll_interval_ms must be >= session_timeout_ms.",
            {"group_id": "g", "max_poll_interval_ms": 1, "session_timeout_ms": 10},
        ),
        (
            "auto_offset_reset='first' is not a value it can have. Use one of earliest, latest, none.",
            {"auto_offset_reset": "first"},
        ),
        ("max.poll.records='x' is not a number above 0.", {"config": {"max.poll.records": "x"}}),
    ],
)
def test_a_consumers_refusal_names_what_was_typed(sentence, given):
    """Is the same so for consumers?"""
    with pytest.raises(BadOption) as caught:
        KafkaConsumer("t", **NOBODY, **given)

    assert sentence == str(caught.value)


def test_secrets_stay_out_of_refusals():
    """Is the value of a password left out where its option is named?"""
    typed = {"ssl.key.password": Typed("ssl_password", "s3cret")}

    expected = "ssl_password is not a value it can have."
    assert expected == str(refused('Invalid value "s3cret" for configuration property "ssl.key.password"', typed))
