"""Where the cluster is, and how to log in there, in the words of Java's clients."""

import pytest

from headrace.client.fault import ClientFault
from headrace.client.options import connection_options, parse_addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092", (("localhost", 9092),)),
        ("a:1, b:2,", (("a", 1), ("b", 2))),
        ("broker", (("broker", 9092),)),
        ("PLAINTEXT://broker:19092", (("broker", 19092),)),
        ("[::1]:9093", (("::1", 9093),)),
        ("[::1]", (("::1", 9092),)),
    ],
)
def test_addresses_are_read_as_people_write_them(text, expected):
    """Is every usual way to write a bootstrap server understood?"""
    assert parse_addresses(text) == expected


@pytest.mark.parametrize("text", ["", ",", "host:", "host:port", "host:0", "host:70000", ":9092"])
def test_what_is_no_address_is_refused(text):
    """Does a wrong address end in a sentence that says how to write one?"""
    with pytest.raises(ClientFault, match="localhost:9092"):
        parse_addresses(text)


def test_javas_login_line_is_read():
    """Are user and password found in sasl.jaas.config, where Java's users have them?"""
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="al ice" password="p;w=1";'
    options = connection_options("b:1", {"security.protocol": "sasl_ssl", "sasl.jaas.config": line})
    assert (options.sasl_username, options.sasl_password) == ("al ice", "p;w=1")
    assert options.uses_tls
    assert options.uses_sasl


def test_librdkafkas_names_are_read_too():
    """Can the same file serve clients on librdkafka?"""
    given = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem", "sasl.username": "u", "request.timeout.ms": "250"}
    options = connection_options("b:1", given)
    assert (options.ssl_ca_file, options.sasl_username, options.request_timeout_s) == ("ca.pem", "u", 0.25)


@pytest.mark.parametrize(
    "given", [{"security.protocol": "TLS"}, {"request.timeout.ms": "soon"}], ids=lambda given: next(iter(given))
)
def test_what_cannot_be_is_refused(given):
    """Does a wrong value end in a sentence?"""
    with pytest.raises(ClientFault):
        connection_options("b:1", given)


def test_secrets_are_not_shown():
    """Do options that end up in a log or a traceback keep passwords to themselves?"""
    options = connection_options(
        "localhost:9092",
        {
            "sasl.username": "ann",
            "sasl.password": "s3cret",
            "ssl.key.password": "s3cret",
            "sasl.oauthbearer.token": "s3cret",
        },
    )

    assert "ann" in repr(options)
    assert "s3cret" not in repr(options)
