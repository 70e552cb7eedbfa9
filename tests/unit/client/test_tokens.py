"""When tokens expire, and where they come from."""

import json
from base64 import urlsafe_b64encode

import pytest

from headrace.client.fault import BadOption
from headrace.client.tokens import LEAST_LIFE_S, UNKNOWN_LIFE_S, expiry_of, lifetime, token_source


def token(**claims):
    """A token with these claims."""
    return f"head.{urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(token(exp=1000), 1000.0), (token(sub="me"), None), ("opaque", None), ("a.b.c", None), (token(exp="soon"), None)],
)
def test_expiry(text, expected):
    """Is the time read out of a JSON web token, and no other token stumbled over?"""
    assert expected == expiry_of(text)


def test_lifetime():
    """Is the engine told to ask again in time, and left to let the broker refuse what has expired?"""
    assert 5000.0 == lifetime(token(exp=5000), 100.0)
    assert 100.0 + LEAST_LIFE_S == lifetime(token(exp=50), 100.0)
    assert 100.0 + UNKNOWN_LIFE_S == lifetime("opaque", 100.0)


def test_sources():
    """Is a function as good as an object with a method, and anything else refused?"""

    class Provider:
        """As kafka-python's."""

        def token(self):
            """A token."""
            return "mine"

    assert "mine" == token_source(Provider())() == token_source(lambda: "mine")()
    with pytest.raises(BadOption, match="has no token"):
        token_source("a token")
