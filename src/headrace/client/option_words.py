"""What librdkafka refuses of its settings, said of the options that the person wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.fault import BadOption
from headrace.client.option_table import OPTIONS

SAME = {
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.mechanisms": "sasl.mechanism",
}
"""Settings that librdkafka calls otherwise when it speaks of them, and what we hand it."""

_SECRET = re.compile("password|secret|passphrase|token|jaas|pem")
_RANGE = re.compile(r'Configuration property "([^"]+)" value \S+ is outside allowed range (\S+)')
_INVALID = re.compile(r'Invalid value (?:".*" )?for configuration property "([^"]+)"', re.DOTALL)
_NAMED = re.compile(r"(?<![\w.])[a-z]+(?:\.[a-z]+)+(?![\w.])")
_AROUND = re.compile(r"^Failed to create \w+: ")
_OF_ENGINE = {row.engine: row.name for row in reversed(list(OPTIONS.values())) if row.engine}


@dataclass(frozen=True, slots=True)
class Typed:
    """An option as the person wrote it."""

    name: str
    value: Any

    def __str__(self) -> str:
        return self.name if _SECRET.search(self.name) else f"{self.name}={self.value!r}"


def refused(text: str, typed: Mapping[str, Typed]) -> BadOption:
    """The engine's refusal of its settings; `typed` are the options by the engine's names."""
    text = _AROUND.sub("", text.strip().rstrip("."))
    if found := _RANGE.search(text):
        return BadOption(f"{_said(found[1], typed)} is outside of its range, {found[2]}")
    if found := _INVALID.search(text):
        return BadOption(f"{_said(found[1], typed)} is not a value it can have")
    # Of several options: each is named, with the marks of code taken off.
    return BadOption(_NAMED.sub(lambda match: _name(match[0], typed), text.replace("`must", "` must")).replace("`", ""))


def _said(engine: str, typed: Mapping[str, Typed]) -> str:
    found = _find(engine, typed)
    return str(found) if found else _name(engine, typed)


def _name(engine: str, typed: Mapping[str, Typed]) -> str:
    found = _find(engine, typed)
    return found.name if found else _OF_ENGINE.get(SAME.get(engine, engine), engine)


def _find(engine: str, typed: Mapping[str, Typed]) -> Typed | None:
    return typed.get(engine) or typed.get(SAME.get(engine, engine))
