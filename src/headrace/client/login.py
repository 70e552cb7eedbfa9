"""Proving to a broker who we are (SASL): PLAIN, SCRAM and OAUTHBEARER, the client's side.

Each mechanism is a generator: it yields what to send and is sent what came back, so that the exchange itself can be
tested without a socket.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from headrace.client.fault import NotAuthenticated

if TYPE_CHECKING:
    from headrace.client.options import ConnectionOptions

Exchange = Generator[bytes, bytes, None]

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS_MAX = 1_000_000
CREDENTIALS = "Check sasl_mechanism, user name, and password or token."


def login(options: ConnectionOptions, nonce: str) -> Exchange:
    """The exchange of the mechanism the options name."""
    mechanism = options.mechanism
    start = MECHANISMS.get(mechanism)
    if start is None:
        raise NotAuthenticated(f"sasl.mechanism={mechanism} is unknown", f"Use one of {', '.join(MECHANISMS)}.")
    return start(options, nonce)


def _plain(options: ConnectionOptions, _: str) -> Exchange:
    _need_user(options)
    yield f"\0{options.sasl_username}\0{options.sasl_password}".encode()


def _oauth(options: ConnectionOptions, _: str) -> Exchange:
    """A token as it is (RFC 7628); a broker that refuses it says why in what looks like a success."""
    token = options.sasl_token or (options.token_source() if options.token_source is not None else "")
    if not token:
        raise NotAuthenticated("OAUTHBEARER needs a token", "Set sasl_oauthbearer_token, or sasl.oauthbearer.token.")
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        reason = refusal.decode(errors="replace")
        raise NotAuthenticated(f"The broker refused the token: {reason}", "Has it expired, or is it for somebody else?")


def _scram(options: ConnectionOptions, nonce: str) -> Exchange:
    """SCRAM (RFC 5802): the password never crosses the wire, and the broker proves that it knows it too."""
    _need_user(options)
    name = SCRAM_HASHES[options.mechanism]
    user = options.sasl_username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    fields = _fields(challenge)
    salt, iterations, both = b64decode(fields["s"]), int(fields["i"]), fields["r"]
    if not both.startswith(nonce) or not 0 < iterations <= _ITERATIONS_MAX:
        raise NotAuthenticated("The broker's SCRAM challenge is not an answer to ours", "Is this really the broker?")
    salted = hashlib.pbkdf2_hmac(name, options.sasl_password.encode(), salt, iterations)
    without_proof = f"c=biws,r={both}"
    signed = f"{first},{challenge},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = _fields((yield f"{without_proof},p={b64encode(proof).decode()}".encode()).decode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(b64decode(answer.get("v", "")), expected):
        raise NotAuthenticated("The broker does not know the password itself", "Is this really the broker?")


def _fields(message: str) -> dict[str, str]:
    fields = dict(part.split("=", 1) for part in message.split(",") if "=" in part)
    if "e" in fields:
        raise NotAuthenticated(f"The broker refused the login: {fields['e']}", CREDENTIALS)
    return fields


def _need_user(options: ConnectionOptions) -> None:
    if not options.sasl_username:
        raise NotAuthenticated(
            f"{options.mechanism} needs a user name and a password",
            "Set sasl_username and sasl_password (with dots in a file), or sasl.jaas.config.",
        )


MECHANISMS: dict[str, Callable[[ConnectionOptions, str], Exchange]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauth,
}
