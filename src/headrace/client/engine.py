"""librdkafka, through confluent-kafka: the engine under the producers and consumers, and its errors in our words."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NoReturn

from headrace.client.encryption import certificate_refused
from headrace.client.fault import BadOption, ClientFault, MissingPackage, NoBroker, NotAuthenticated, TimedOut
from headrace.client.login import CREDENTIALS
from headrace.client.option_words import refused
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

try:
    import confluent_kafka
except ImportError as missing:
    raise MissingPackage(
        "Headrace's producers and consumers need confluent-kafka, which is not installed",
        "Install it with: pip install 'headrace[client]'",
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.client.option_words import Typed

Engine = confluent_kafka
EngineError = confluent_kafka.KafkaError
EngineException = confluent_kafka.KafkaException

_ASK_S = 0.25
_CHECK = "Check host, port and security_protocol; is the broker running?"
_CERTIFICATES = "Check security_protocol, ssl_cafile, ssl_certfile and ssl_keyfile."
# What the engine puts around a reason: whom it talked to, and when.
_AROUND = re.compile(r"\w+://([^/]+)/\S+: (.*?)(?: \(after .*\))?\.?", re.DOTALL)
_REFUSED = "SASL authentication error: "
_SAYS_LITTLE = ("brokers are down", "SSL")
_ALERT = re.compile(r"alert [a-z ]*(?:certificate|unknown ca)[a-z ]*")

# librdkafka's own errors have numbers below those of the protocol.
_LOCAL: dict[int, tuple[type[ClientFault], str]] = {
    EngineError._TIMED_OUT: (TimedOut, "Is the broker overloaded, or gone?"),  # noqa: SLF001 - its public names begin so
    EngineError._TIMED_OUT_QUEUE: (TimedOut, "Is the broker overloaded, or gone?"),  # noqa: SLF001
    EngineError._MSG_TIMED_OUT: (TimedOut, "The record was not acknowledged within delivery_timeout_ms."),  # noqa: SLF001
    EngineError._TRANSPORT: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._ALL_BROKERS_DOWN: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._RESOLVE: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._AUTHENTICATION: (NotAuthenticated, CREDENTIALS),  # noqa: SLF001
    EngineError._SSL: (NotAuthenticated, _CERTIFICATES),  # noqa: SLF001
    EngineError._INVALID_ARG: (BadOption, ""),  # noqa: SLF001
}
_ABSENT = frozenset({EngineError._UNKNOWN_TOPIC, EngineError._UNKNOWN_PARTITION})  # noqa: SLF001
_CODES = frozenset(int(code) for code in ErrorCode)


def fault_of(error: EngineError | EngineException) -> HeadraceError:
    """The error of the engine as one of ours: the broker's by its code, the engine's own by what they mean."""
    found = error.args[0] if isinstance(error, EngineException) else error
    if not isinstance(found, EngineError):
        return ClientFault(str(found))
    code, text = found.code(), found.str()
    if code in _CODES:
        return KafkaError(ErrorCode(code), text)
    if code in _ABSENT:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    kind, remedy = _LOCAL.get(code, (ClientFault, ""))
    around, alert = _AROUND.fullmatch(text), _ALERT.search(text)
    if around is not None and alert is not None:
        # In TLS 1.3 our certificate is refused only after the handshake; the engine takes it for a lost connection.
        return certificate_refused(around[1], alert[0])
    if around is not None and around[2].startswith(_REFUSED):
        text = f"{around[1]} refused the login: {around[2].removeprefix(_REFUSED)}"
    return kind(text.rstrip("."), remedy)


def raise_fault(error: EngineError | EngineException) -> NoReturn:
    """Raise the error of the engine as one of ours."""
    raise fault_of(error) from (error if isinstance(error, EngineException) else None)


def settings_refusal(error: EngineException, typed: Mapping[str, Typed]) -> HeadraceError:
    """Why there can be no client with these settings, in the person's words where it is about them."""
    found = error.args[0]
    is_about_them = isinstance(found, EngineError) and found.code() == EngineError._INVALID_ARG  # noqa: SLF001
    return refused(found.str(), typed) if is_about_them else fault_of(error)


class Troubles:
    """What the engine complains about in passing; it goes on trying, and we decide how long."""

    __slots__ = ("explain", "login", "network")

    def __init__(self, explain: Callable[[], ClientFault | None] = lambda: None) -> None:
        """`explain` looks for a reason of which the engine says too little."""
        self.explain = explain
        self.login: HeadraceError | None = None
        self.network: HeadraceError | None = None

    def note(self, error: EngineError) -> None:
        """Keep the last complaint of each kind; that all brokers are down says less than why one is."""
        fault = fault_of(error)
        if isinstance(fault, NotAuthenticated):
            self.login = fault
        elif isinstance(fault, NoBroker) and (self.network is None or error.code() != EngineError._ALL_BROKERS_DOWN):  # noqa: SLF001
            self.network = fault

    def clear(self) -> None:
        """Somebody answered."""
        self.login = self.network = None


def reach(client: Any, serve: Callable[[], object], troubles: Troubles, *, where: str, timeout_s: float) -> None:
    """Wait until a broker answers; what prevents it is raised when the time is up, a refused login at once."""
    deadline = time.monotonic() + timeout_s
    while True:
        left = deadline - time.monotonic()
        try:
            client.list_topics(timeout=max(min(_ASK_S, left), 0.001))
        except EngineException as error:
            serve()
            if troubles.login is not None:
                raise _told(troubles, troubles.login) from error
            if left <= 0:
                raise _unreached(troubles, f"No broker answered at {where} within {timeout_s:g} s") from error
        else:
            troubles.clear()
            return


def _told(troubles: Troubles, refused: HeadraceError) -> HeadraceError:
    """A refusal: a login in the broker's own words, a certificate in ours."""
    if getattr(refused, "remedy", "") != _CERTIFICATES:
        return refused
    found = troubles.explain()
    return found if isinstance(found, NotAuthenticated) else refused


def _unreached(troubles: Troubles, sentence: str) -> ClientFault:
    """Nobody answered in time: why, as far as it can be known."""
    told = troubles.network.problem if isinstance(troubles.network, ClientFault) else ""
    if not told or any(sign in told for sign in _SAYS_LITTLE):
        found = troubles.explain()
        if isinstance(found, NotAuthenticated | BadOption):
            return found
        told = found.problem if found is not None else told
    reason = f": {told}" if told else ""
    return NoBroker(f"{sentence}{reason}", _CHECK)
