"""What is said on a new connection before the first question: which versions, and who we are.

A generator: it yields questions and is sent their answers, so that the connection of an event loop and the one that
blocks say the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.client.fault import NotAuthenticated, NotServed
from headrace.client.login import CREDENTIALS, login
from headrace.model.errors import ErrorCode, KafkaError, MalformedRequest
from headrace.wire.apis import APIS
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from headrace.client.options import ConnectionOptions

METADATA, API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 3, 18, 17, 36
_IS_CONTROLLER = "Is that a controller's port? Give one at which a broker listens for clients."
_SOFTWARE = "headrace"


class Question(NamedTuple):
    """One request."""

    api_key: int
    version: int
    message: Any


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a broker said that it serves."""

    where: str
    versions: Mapping[int, tuple[int, int]]
    """The first and last version by API key."""
    features: Mapping[str, int]
    """The levels the cluster has agreed on, by feature."""

    def version_of(self, api_key: int, *, at_most: int | None = None) -> int:
        """The newest version both sides know; NotServed if there is none."""
        api = APIS[api_key]
        served = self.versions.get(api_key)
        first, last = served or (0, -1)
        version = min(last, api.version_last, api.version_last if at_most is None else at_most)
        if served is None or version < max(first, api.version_first):
            remedy = _IS_CONTROLLER if api_key == METADATA else "It may be too old, or lack the feature."
            raise NotServed(f"The broker at {self.where} does not serve {api.name}", remedy)
        return version


Handshake = Generator[Question, Any, Agreement]


def handshake(options: ConnectionOptions, where: str) -> Handshake:
    """Agree on versions, and log in where that is asked for."""
    agreement = yield from _agree(where)
    if options.uses_sasl:
        yield from _log_in(options, agreement)
    return agreement


def _agree(where: str) -> Handshake:
    """Ask what the broker serves; one too old for our question answers in the oldest form (KIP-511)."""
    newest = APIS[API_VERSIONS].version_last
    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
    oldest = Question(API_VERSIONS, 0, ApiVersionsRequest())
    try:
        answer = yield Question(API_VERSIONS, newest, request)
    except MalformedRequest:
        answer = yield oldest
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = yield oldest
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), f"{where} refused to say what it serves.")
    return Agreement(
        where,
        {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys},
        {one.name: one.max_version_level for one in answer.finalized_features},
    )


def _log_in(options: ConnectionOptions, agreement: Agreement) -> Generator[Question, Any, None]:
    where = agreement.where
    mechanism = options.mechanism
    hello = yield Question(
        SASL_HANDSHAKE, agreement.version_of(SASL_HANDSHAKE), SaslHandshakeRequest(mechanism=mechanism)
    )
    if hello.error_code:
        offered = ", ".join(hello.mechanisms) or "none"
        raise NotAuthenticated(f"{where} does not accept {mechanism}", f"It accepts: {offered}.")
    exchange = login(options, secrets.token_urlsafe(18))
    version = agreement.version_of(SASL_AUTHENTICATE)
    message = next(exchange)
    while True:
        answer = yield Question(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code:
            reason = answer.error_message or ErrorCode(answer.error_code).name
            raise NotAuthenticated(f"{where} refused the login: {reason.rstrip('.')}", CREDENTIALS)
        try:
            message = exchange.send(answer.auth_bytes)
        except StopIteration:
            return
