"""confluent-kafka for the tools: Java's setting names in, librdkafka's out, and its complaints in sentences.

People give a tool the properties file of their Java client. Most names are the same; the tables here hold the rest.
A name neither side knows is left out; the session has said so on standard error when it read it.
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING, Any

from headrace.cli.session import Failure
from headrace.client.diagnosis import diagnosis
from headrace.client.fault import BadOption, NotAuthenticated
from headrace.client.java_settings import is_known
from headrace.client.option_table import WITHOUT_EFFECT
from headrace.client.option_words import Typed, refused
from headrace.client.tokens import lifetime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from headrace.cli.session import Session

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
"""Java's names for what librdkafka calls otherwise."""

OURS = frozenset(
    {
        "bootstrap.servers",
        "bootstrap.timeout.ms",
        "consumer.timeout.ms",
        "default.api.timeout.ms",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "value.deserializer",
        "value.serializer",
    }
)
"""Settings that the tools serve otherwise, or that a tool has no use for because it works on bytes."""

ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "range",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
RESETS = {"none": "error"}
_KIBI = 1024
_UNKNOWN = re.compile(r'No such configuration property: "([^"]+)"|Property "([^"]+)" is not supported')
_NUMBERS = re.compile(r"\d+")
_SECURITY = ("ssl.", "sasl.", "security.")
_QUIET = "2"
"""librdkafka's log level: its chatter is not for a tool's user; errors come to us as events."""


def engine() -> ModuleType:
    """The package confluent_kafka, installed first where that is ours to do."""
    try:
        import confluent_kafka
    except ImportError:
        from headrace.cli.extras import ensure_extra

        ensure_extra("client")
        import confluent_kafka
    return confluent_kafka


def engine_settings(session: Session, properties: Mapping[str, str]) -> dict[str, Any]:
    """The settings of librdkafka for these Java-style properties and for the cluster of this session."""
    found: dict[str, Any] = {"bootstrap.servers": session.bootstrap(), "log_level": _QUIET, **_security(session)}
    for name, value in properties.items():
        # What nothing comes of, the session has told when it read the settings.
        if name in OURS or name.startswith(_SECURITY) or not is_known(name) or name.replace(".", "_") in WITHOUT_EFFECT:
            continue
        if name == "buffer.memory":
            found["queue.buffering.max.kbytes"] = _kilobytes(name, value)
        elif name == "partition.assignment.strategy":
            found[name] = _assignors(value)
        elif name == "auto.offset.reset":
            found[name] = RESETS.get(value, value)
        else:
            found[RENAMED.get(name, name)] = value
    return found


def _kilobytes(name: str, text: str) -> str:
    try:
        return str(max(int(text) // _KIBI, 1))
    except ValueError:
        raise Failure(f"{name}={text} is not a number.", remedy="Check the properties given to this tool.") from None


def _assignors(text: str) -> str:
    names = [part.strip().rsplit(".", 1)[-1] for part in text.split(",")]
    return ",".join(dict.fromkeys(ASSIGNORS.get(name, name) for name in names))


def _security(session: Session) -> dict[str, Any]:
    """Who we are; a login or certificate that is refused ends the tool here, where librdkafka would go on trying."""
    options = session.connection()
    if options.uses_tls or options.uses_sasl:
        fault = diagnosis(options)
        if isinstance(fault, NotAuthenticated | BadOption):
            raise fault
    found: dict[str, Any] = {
        "security.protocol": options.security_protocol,
        "sasl.mechanisms": options.mechanism,
        "sasl.username": options.sasl_username,
        "sasl.password": options.sasl_password,
        "ssl.ca.location": options.ssl_ca_file,
        "ssl.ca.pem": options.ssl_ca_pem,
        "ssl.certificate.location": options.ssl_certificate_file,
        "ssl.key.location": options.ssl_key_file,
        "ssl.key.password": options.ssl_key_password,
    }
    if options.sasl_token:
        found["oauth_cb"] = lambda _: (options.sasl_token, lifetime(options.sasl_token, time.time()))
    if not options.uses_sasl:
        found = {name: value for name, value in found.items() if not name.startswith("sasl.")}
    if not options.ssl_check_hostname:
        found["ssl.endpoint.identification.algorithm"] = "none"
    return {name: value for name, value in found.items() if value}


def make(kind: Callable[[dict[str, Any]], Any], settings: dict[str, Any]) -> Any:
    """A client of librdkafka; names it does not know are left out and said, other mistakes are a Failure."""
    settings = dict(settings)
    while True:
        try:
            return kind(settings)
        except engine().KafkaException as error:
            text = error.args[0].str() if hasattr(error.args[0], "str") else str(error)
            match = _UNKNOWN.search(text)
            name = match and (match[1] or match[2])
            if not name or name not in settings:
                raise Failure(_refused(text, settings), remedy="Check the properties given to this tool.") from None
            print(f"The client does not know the setting {name}; it is left out.", file=sys.stderr)
            del settings[name]


def _refused(text: str, settings: Mapping[str, Any]) -> str:
    """What librdkafka refuses, said of Java's settings."""
    java = {engine: name for name, engine in RENAMED.items()} | {"queue.buffering.max.kbytes": "buffer.memory"}
    return str(refused(text, {name: Typed(java.get(name, name), value) for name, value in settings.items()}))


class Complaints:
    """librdkafka's errors in passing, each said once on standard error; the last one is kept."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self.fatal: str = ""

    def __call__(self, error: Any) -> None:
        """Hear of an error."""
        text = error.str()
        if error.fatal():
            self.fatal = text
        # Told once, whatever the times and counts in it are.
        kind = _NUMBERS.sub("", text)
        if kind not in self._said:
            self._said.add(kind)
            print(f"{text}{'' if text.endswith('.') else '.'}", file=sys.stderr)
