"""The client's side of SASL, without a socket."""

from base64 import b64encode

import pytest

from headrace.client.fault import NotAuthenticated
from headrace.client.login import login
from headrace.client.options import connection_options


def options(mechanism, user="user", password="pencil", **more):
    """Connection options with a login."""
    given = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password, **more}
    return connection_options("b:1", {"security.protocol": "SASL_PLAINTEXT", **given})


def test_plain_is_one_message():
    """Does PLAIN send an empty authorization id, the user and the password?"""
    exchange = login(options("PLAIN"), "n")
    assert next(exchange) == b"\0user\0pencil"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_scram_sha_256_is_that_of_the_rfc():
    """Is the exchange the one of RFC 7677, byte for byte?"""
    exchange = login(options("SCRAM-SHA-256"), "rOprNGfwEbeRWgbNEkqO")
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = exchange.send(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_broker_that_does_not_know_the_password_is_not_believed():
    """Is the broker's own proof checked?"""
    exchange = login(options("SCRAM-SHA-512"), "abc")
    next(exchange)
    exchange.send(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(NotAuthenticated, match="really the broker"):
        exchange.send(b"v=" + b64encode(b"x" * 64))


@pytest.mark.parametrize(
    "challenge", [b"r=zzz,s=c2FsdA==,i=4096", b"r=abcd,s=c2FsdA==,i=2000000000", b"e=unknown-user"]
)
def test_a_strange_challenge_is_refused(challenge):
    """Does an exchange end when the broker answers another question, asks for hours of work, or refuses?"""
    exchange = login(options("SCRAM-SHA-256"), "abc")
    next(exchange)
    with pytest.raises(NotAuthenticated):
        exchange.send(challenge)


def test_a_token_is_sent_as_the_rfc_says():
    """Is OAUTHBEARER's one message that of RFC 7628?"""
    exchange = login(options("OAUTHBEARER", **{"sasl.oauthbearer.token": "t.o.k"}), "n")
    assert next(exchange) == b"n,,\x01auth=Bearer t.o.k\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_refused_token_is_no_success():
    """Is the reason read that a broker sends without an error code (RFC 7628, 3.2.2)?"""
    exchange = login(options("OAUTHBEARER", **{"sasl.oauthbearer.token": "old"}), "n")
    next(exchange)
    with pytest.raises(NotAuthenticated, match=r"invalid_token.*expired"):
        exchange.send(b'{"status":"invalid_token"}')


@pytest.mark.parametrize(("mechanism", "user"), [("GSSAPI", "u"), ("PLAIN", ""), ("OAUTHBEARER", "u")])
def test_what_is_missing_is_named(mechanism, user):
    """Does a login that cannot work say what to set?"""
    with pytest.raises(NotAuthenticated):
        next(login(options(mechanism, user=user), "n"))
