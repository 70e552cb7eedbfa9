"""librdkafka, through confluent-kafka: the engine under the producers and consumers, and its errors in our words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

from headrace.client.fault import BadOption, ClientFault, MissingPackage, NoBroker, NotAuthenticated, TimedOut
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

try:
    import confluent_kafka
except ImportError as missing:
    raise MissingPackage(
        "Headrace's producers and consumers need confluent-kafka, which is not installed",
        "Install it with: pip install 'headrace[client]'",
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Callable

Engine = confluent_kafka
EngineError = confluent_kafka.KafkaError
EngineException = confluent_kafka.KafkaException

_ASK_S = 0.25
_CHECK = "Check host, port and security_protocol; is the broker running?"
_LOGIN = "Check sasl_mechanism, user name, password and certificates."

# librdkafka's own errors have numbers below those of the protocol.
_LOCAL: dict[int, tuple[type[ClientFault], str]] = {
    EngineError._TIMED_OUT: (TimedOut, "Is the broker overloaded, or gone?"),  # noqa: SLF001 - its public names begin so
    EngineError._TIMED_OUT_QUEUE: (TimedOut, "Is the broker overloaded, or gone?"),  # noqa: SLF001
    EngineError._MSG_TIMED_OUT: (TimedOut, "The record was not acknowledged within delivery_timeout_ms."),  # noqa: SLF001
    EngineError._TRANSPORT: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._ALL_BROKERS_DOWN: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._RESOLVE: (NoBroker, _CHECK),  # noqa: SLF001
    EngineError._AUTHENTICATION: (NotAuthenticated, _LOGIN),  # noqa: SLF001
    EngineError._SSL: (NotAuthenticated, _LOGIN),  # noqa: SLF001
    EngineError._INVALID_ARG: (BadOption, ""),  # noqa: SLF001
}
_CODES = frozenset(int(code) for code in ErrorCode)


def fault_of(error: EngineError | EngineException) -> HeadraceError:
    """The error of the engine as one of ours: the broker's by its code, the engine's own by what they mean."""
    found = error.args[0] if isinstance(error, EngineException) else error
    if not isinstance(found, EngineError):
        return ClientFault(str(found))
    code, text = found.code(), found.str()
    if code in _CODES:
        return KafkaError(ErrorCode(code), text)
    kind, remedy = _LOCAL.get(code, (ClientFault, ""))
    return kind(text.rstrip("."), remedy)


def raise_fault(error: EngineError | EngineException) -> NoReturn:
    """Raise the error of the engine as one of ours."""
    raise fault_of(error) from (error if isinstance(error, EngineException) else None)


class Troubles:
    """What the engine complains about in passing; it goes on trying, and we decide how long."""

    __slots__ = ("login", "network")

    def __init__(self) -> None:
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
                raise troubles.login from error
            if left <= 0:
                reason = f": {troubles.network.problem}" if isinstance(troubles.network, ClientFault) else ""
                raise NoBroker(f"No broker answered at {where} within {timeout_s:g} s{reason}", _CHECK) from error
        else:
            troubles.clear()
            return
