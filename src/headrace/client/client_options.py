"""A client's options, gathered from where they may stand: arguments, `config=`, `config_file=`, the environment.

What is nearer to the call wins. Names are kafka-python's (`session_timeout_ms`), Java's (`session.timeout.ms`) or
librdkafka's; one that nobody knows is an error that names the nearest known one.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, cast

from headrace.client.diagnosis import diagnosis
from headrace.client.encryption import check_store, is_pem, tls_context
from headrace.client.fault import BadOption, ClientFault, UnknownOption
from headrace.client.java_settings import IDLE, PARTITIONER_CLASS, idle_line, is_idle, stock_partitioner
from headrace.client.option_table import (
    ADMIN,
    BY_DOTTED_NAME,
    CONSUMER,
    ENGINE_NAMES,
    OPTIONS,
    PRODUCER,
    WITHOUT_EFFECT,
    ClientOption,
    NotOneOf,
)
from headrace.client.option_words import Typed
from headrace.client.options import ConnectionOptions, connection_options, jaas_login
from headrace.client.tokens import lifetime, token_source
from headrace.settings.fault import ConfigFault
from headrace.settings.properties import load_properties

ENVIRONMENT_PREFIX = "HEADRACE_"
ENVIRONMENT_OPTIONS = (
    "bootstrap_servers",
    "client_id",
    "security_protocol",
    "sasl_mechanism",
    "sasl_username",
    "sasl_password",
    "sasl_oauthbearer_token",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_check_hostname",
)
"""What the environment may say, in capitals after HEADRACE_; only what differs between places a program runs in."""
SERVERS_DEFAULT = "localhost:9092"
# librdkafka tells what it meets on standard error; what matters is in our exceptions.
_LOG_LEVEL = 2
_QUEUE_BACKOFF_MS = 10
_DELIVERY_MS = 120_000
_MESSAGE_BYTES, _MESSAGE_BYTES_MIN = 1_000_000, 1000
"""What the engine's `message.max.bytes` is when nobody says, and the least it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options sorted by who serves them."""

    engine: dict[str, Any]
    own: dict[str, Any] = field(default_factory=dict)
    typed: dict[str, Typed] = field(default_factory=dict)
    """What the person wrote, by the name under which it is kept in one of the two."""
    idle: list[str] = field(default_factory=list)
    """Settings that only Java's clients know."""

    @property
    def where(self) -> str:
        """The bootstrap servers, as given."""
        return str(self.engine["bootstrap.servers"])

    def seconds(self, name: str) -> float:
        """One of our own options in milliseconds, in seconds."""
        value = self.own[name]
        try:
            return max(float(value), 0) / 1000
        except (TypeError, ValueError):
            raise BadOption(f"{self.called(name)}={value!r} is not a number", "Give milliseconds.") from None

    def called(self, name: str, usual: str = "") -> str:
        """What the person calls an option, kept under this name; the usual word where they do not name it."""
        return self.typed[name].name if name in self.typed else usual or name

    def connection(self) -> ConnectionOptions:
        """The same options for the wire client."""
        words = {name: str(value) for name, value in self.engine.items() if not callable(value)}
        if "sasl_oauthbearer_token" in self.own:
            words["sasl.oauthbearer.token"] = self.own["sasl_oauthbearer_token"]
        if "socket.timeout.ms" in words:
            words["request.timeout.ms"] = words["socket.timeout.ms"]
        words.setdefault("socket.connection.setup.timeout.ms", str(int(self.own["bootstrap_timeout_ms"])))
        provider = self.own.get("sasl_oauth_token_provider")
        found = connection_options(self.where, words)
        found = replace(
            found, called={name: self.called(OPTIONS[name].engine, usual) for name, usual in found.called.items()}
        )
        return found if provider is None else replace(found, token_source=token_source(provider))

    def explain(self) -> ClientFault | None:
        """What prevents a connection, tried once more by ourselves."""
        try:
            return diagnosis(self.connection())
        except ClientFault as fault:
            return fault


def gather(
    kind: str,
    arguments: Mapping[str, Any],
    *,
    config: Mapping[str, Any] | None = None,
    config_file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ClientOptions:
    """The options of a client of one kind: "producer", "consumer" or "admin"."""
    found = ClientOptions(engine={"bootstrap.servers": SERVERS_DEFAULT, "log_level": _LOG_LEVEL})
    found.own.update({row.name: row.default for row in OPTIONS.values() if kind in row.kinds and not row.engine})
    _take(found, kind, _from_environment(os.environ if environment is None else environment), is_shared=True)
    if config_file is not None:
        _take(found, kind, _from_file(config_file), is_shared=True)
    _take(found, kind, config or {})
    _take(found, kind, {name: value for name, value in arguments.items() if value is not None})
    _log_in(found)
    _take_key_store(found)
    if found.idle:
        # Said of the line that makes the client: the one before its class.
        warnings.warn(idle_line(list(dict.fromkeys(found.idle))), stacklevel=3)
    is_read_by_engine = kind != ADMIN and "ssl.keystore.location" in found.engine
    if _uses_tls(found) and not is_read_by_engine:
        tls_context(found.connection())
    _FINISH[kind](found)
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    named = {name: f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in ENVIRONMENT_OPTIONS}
    return {name: environment[variable] for name, variable in named.items() if environment.get(variable)}


def _from_file(path: str | os.PathLike[str]) -> dict[str, str]:
    try:
        return load_properties(path)
    except ConfigFault as fault:
        raise BadOption(fault.problem, fault.remedy) from None


def _take(found: ClientOptions, kind: str, given: Mapping[str, Any], *, is_shared: bool = False) -> None:
    """Sort options in; what several clients share may hold options that are for another kind."""
    for name, value in given.items():
        row = OPTIONS.get(name) or BY_DOTTED_NAME.get(name)
        if name in WITHOUT_EFFECT or name.replace(".", "_") in WITHOUT_EFFECT:
            continue
        if row is None and is_idle(name):
            _take_java(found, kind, name, str(value))
        elif row is None and name in ENGINE_NAMES:
            found.engine[name] = value
            found.typed[name] = Typed(name, value)
        elif row is None:
            raise _unknown(kind, name)
        elif kind in row.kinds:
            _put(found, row, Typed(name, value))
        elif not is_shared:
            raise UnknownOption(f"{name} is no option of a {kind}", f"It is one of a {' or '.join(sorted(row.kinds))}.")


def _put(found: ClientOptions, row: ClientOption, typed: Typed) -> None:
    try:
        converted = row.convert(typed.value)
    except NotOneOf as error:
        raise BadOption(f"{typed} is not a value it can have", str(error)) from None
    except (TypeError, ValueError):
        raise BadOption(f"{typed} is not a value it can have") from None
    if row.engine:
        found.engine[row.engine] = converted
    else:
        found.own[row.name] = converted
    found.typed[row.engine or row.name] = typed


def _take_java(found: ClientOptions, kind: str, name: str, value: str) -> None:
    """A setting of Java's clients alone: its partitioners have names here, the rest is told to be without effect."""
    partitioner = stock_partitioner(value) if name == PARTITIONER_CLASS else None
    if partitioner is not None and kind == PRODUCER:
        found.own["partitioner"] = partitioner
    elif partitioner is None and value.strip():
        found.idle.append(name)


def _unknown(kind: str, name: str) -> UnknownOption:
    """Say which option was meant: in the spelling of the one that was given."""
    mine = [row for row in OPTIONS.values() if kind in row.kinds]
    dotted = [row.java for row in mine] + sorted(ENGINE_NAMES | IDLE)
    known = dotted if "." in name else [row.name for row in mine]
    near = get_close_matches(name, known, n=1, cutoff=0.0)
    return UnknownOption(f"{name} is no option of a {kind}", f"Did you mean {near[0]}?" if near else "")


def _log_in(found: ClientOptions) -> None:
    """Java's JAAS line, and a plain token, in the engine's words."""
    line = found.own.get("sasl_jaas_config")
    if line:
        user, password = jaas_login(line)
        found.engine.setdefault("sasl.username", user)
        found.engine.setdefault("sasl.password", password)
    protocol = str(found.engine.get("security.protocol", ""))
    if protocol.startswith("SASL") and not {"sasl.mechanism", "sasl.mechanisms"} & found.engine.keys():
        # As our own connections choose; librdkafka would want Kerberos.
        found.engine["sasl.mechanism"] = found.connection().mechanism


def _uses_tls(found: ClientOptions) -> bool:
    return str(found.engine.get("security.protocol", "")).endswith("SSL")


def _take_key_store(found: ClientOptions) -> None:
    """Java's key store of type PEM is what librdkafka calls certificate and key; others it reads itself."""
    store = found.engine.get("ssl.keystore.location")
    if store is None:
        return
    if not _uses_tls(found):
        # As in Java, nobody looks at it; the engine would.
        for name in ("ssl.keystore.location", "ssl.keystore.password"):
            found.engine.pop(name, None)
        return
    try:
        is_ours = is_pem(store)
    except OSError as error:
        raise BadOption(f"ssl.keystore.location={store} cannot be read: {error.strerror}") from None
    check_store(store)
    if is_ours:
        del found.engine["ssl.keystore.location"]
        found.engine.pop("ssl.keystore.password", None)
        for name in ("ssl.certificate.location", "ssl.key.location"):
            found.engine.setdefault(name, store)
            found.typed.setdefault(name, Typed("ssl.keystore.location", store))


def _finish_producer(found: ClientOptions) -> None:
    engine = found.engine
    acks = str(engine.get("acks", "all"))
    engine.setdefault("enable.idempotence", acks == "all")
    if _is_on(engine["enable.idempotence"]) and acks != "all":
        raise BadOption(f"enable_idempotence cannot be with acks={acks}", "Use acks=all, or leave one of them out.")
    if not engine.get("transactional.id") and "message.timeout.ms" not in engine:
        # Java's; in a transaction the engine keeps within the transaction's own time.
        engine.setdefault("delivery.timeout.ms", _DELIVERY_MS)
    if "socket.timeout.ms" in engine:
        engine["request.timeout.ms"] = engine["socket.timeout.ms"]
    _token_callback(found)


def _finish_consumer(found: ClientOptions) -> None:
    # What was handed to the program is what is stored, and it is stored when the program asks for more.
    found.engine["enable.auto.offset.store"] = False
    # As with all other clients; librdkafka alone hides aborted records without being asked.
    found.engine.setdefault("isolation.level", "read_uncommitted")
    if int(found.engine.get("fetch.max.bytes", _MESSAGE_BYTES)) < _MESSAGE_BYTES:
        # The engine wants room for what it might produce; Java's consumer takes any number.
        found.engine.setdefault("message.max.bytes", max(int(found.engine["fetch.max.bytes"]), _MESSAGE_BYTES_MIN))
    # Once enough is queued the engine fetches nothing for so long: with its second, a quick program mostly waits.
    found.engine.setdefault("fetch.queue.backoff.ms", _QUEUE_BACKOFF_MS)
    _token_callback(found)


def _token_callback(found: ClientOptions) -> None:
    """A token provider, or a token as it is, as the engine's callback: a token and when it expires."""
    provider, token = found.own.get("sasl_oauth_token_provider"), found.own.get("sasl_oauthbearer_token")
    if "oauth_cb" in found.engine or not (provider or token):
        _need_token(found)
        return
    source = token_source(provider) if provider is not None else lambda: str(token)

    def give(_: str) -> tuple[str, float]:
        current = source()
        return current, lifetime(current, time.time())

    found.engine["oauth_cb"] = give


_TOKEN_WAYS = frozenset(
    {"oauth_cb", "sasl.oauthbearer.method", "sasl.oauthbearer.config", "enable.sasl.oauthbearer.unsecure.jwt"}
)
"""How the engine gets tokens by itself."""


def _need_token(found: ClientOptions) -> None:
    """The engine would wait for a token for ever."""
    mechanism = str(found.engine.get("sasl.mechanism", found.engine.get("sasl.mechanisms", "")))
    if mechanism == "OAUTHBEARER" and not _TOKEN_WAYS & found.engine.keys():
        raise BadOption("OAUTHBEARER needs a token", "Set sasl_oauthbearer_token, or sasl_oauth_token_provider.")


def _is_on(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).lower() == "true"


_FINISH: Mapping[str, Callable[[ClientOptions], None]] = {
    PRODUCER: _finish_producer,
    CONSUMER: _finish_consumer,
    ADMIN: lambda _: None,
}


def is_on(found: ClientOptions, name: str, *, default: bool) -> bool:
    """A switch of the engine."""
    return _is_on(cast("Any", found.engine.get(name, default)))
