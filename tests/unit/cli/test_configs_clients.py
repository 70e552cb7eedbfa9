"""Quotas and credentials: numbers as Java prints them, passwords as brokers get them."""

import hashlib

import pytest

from headrace.cli.configs_clients import _credential, java_double
from headrace.cli.session import Failure


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0.0"),
        (5.0, "5.0"),
        (12.25, "12.25"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (1e10, "1.0E10"),
        (1.5e300, "1.5E300"),
        (0.0001, "1.0E-4"),
        (0.00025, "2.5E-4"),
        (-1e10, "-1.0E10"),
    ],
)
def test_doubles_are_javas(value, expected):
    """Is a double written as Java's Double.toString writes it?"""
    assert java_double(value) == expected


def test_the_password_stays_here():
    """Does the broker get the salted hash of RFC 5802, and never the password?"""
    made = _credential("alice", "SCRAM-SHA-512", "iterations=8192,password=p=w,d")

    assert made.salted_password == hashlib.pbkdf2_hmac("sha512", b"p=w,d", made.salt, 8192)
    assert (made.name, made.mechanism, made.iterations, len(made.salt)) == ("alice", 2, 8192, 24)


@pytest.mark.parametrize("text", ["passwrd=x", "iterations=1,password=x", "x"])
def test_bad_credentials_are_refused(text):
    """Are misspelt credentials and too few iterations refused?"""
    with pytest.raises(Failure, match=r"Invalid credential property|less than the minimum"):
        _credential("alice", "SCRAM-SHA-256", text)
