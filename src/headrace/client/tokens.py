"""Tokens of OAUTHBEARER: where they come from and when they expire."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

from headrace.client.fault import BadOption

_PARTS = 3
UNKNOWN_LIFE_S = 900.0
"""A token that does not say when it expires is asked for again after most of this time."""
LEAST_LIFE_S = 60.0
"""What the engine is told at least: whether a token has expired is for the broker to say, and it says it better."""


def expiry_of(token: str) -> float | None:
    """When a JSON web token expires, in seconds of the epoch; None if it does not say, or is none."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def lifetime(token: str, now_s: float) -> float:
    """Until when the engine may use a token before it asks again, in seconds of the epoch."""
    expiry = expiry_of(token)
    return max(now_s + UNKNOWN_LIFE_S if expiry is None else expiry, now_s + LEAST_LIFE_S)


def token_source(provider: Any) -> Callable[[], str]:
    """kafka-python's token provider, an object with `token()`, or a function that gives a token."""
    source = getattr(provider, "token", provider)
    if not callable(source):
        raise BadOption(f"sasl_oauth_token_provider={provider!r} has no token()", "Give an object with a method token.")
    found: Callable[[], str] = source
    return found
