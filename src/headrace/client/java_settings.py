"""Settings of Kafka's Java clients that nothing here stands for, and what people are told of the names in their file.

Files written for a Java client are taken as they are. What only Java can do is named in one line, as the broker does
for settings it does not serve; a name that no client has is said with the nearest one that exists.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from headrace.client.option_table import BY_DOTTED_NAME, ENGINE_NAMES, WITHOUT_EFFECT

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITIONER_CLASS = "partitioner.class"
PARTITIONERS = {"DefaultPartitioner": "default", "RoundRobinPartitioner": "round_robin"}
"""Kafka's partitioners by their class, in our words."""

IDLE = frozenset(
    {
        "auto.include.jmx.reporter",
        "bootstrap.controllers",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "config.providers",
        "interceptor.classes",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "metadata.max.idle.ms",
        "metrics.recording.level",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        PARTITIONER_CLASS,
        "partitioner.ignore.keys",
        "sasl.client.callback.handler.class",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "transaction.two.phase.commit.enable",
    }
)
"""What Java's producers, consumers and admin clients of Kafka 4.3 know and nothing here does."""

_OPEN_PREFIXES = ("config.providers.", "metrics.context.")
"""Names under these belong to plug-ins, so nobody can say that they are wrong."""


def is_idle(name: str) -> bool:
    """Whether only a Java client would make something of a setting."""
    return name in IDLE or name.startswith(_OPEN_PREFIXES)


def is_known(name: str) -> bool:
    """Whether any client of ours, or of librdkafka's, makes something of a setting, or may well do without it."""
    return name in BY_DOTTED_NAME or name in ENGINE_NAMES or name.replace(".", "_") in WITHOUT_EFFECT


def stock_partitioner(class_name: str) -> str | None:
    """Our name of a partitioner that Java's clients bring with them; None for any other class."""
    return PARTITIONERS.get(class_name.strip().rsplit(".", 1)[-1])


def idle_line(names: list[str]) -> str:
    """What is said of settings that change nothing."""
    return f"Only Java's clients know these, so they are without effect: {', '.join(names)}."


def notices(given: Mapping[str, str]) -> list[str]:
    """What a person should know about the names in their client's file: without effect here, or unknown."""
    idle = [name for name, value in given.items() if is_idle(name) and _is_missed(name, value)]
    lines = [idle_line(idle)] if idle else []
    for name in given:
        if not is_idle(name) and not is_known(name):
            near = nearest_setting(name)
            lines.append(f"{name} is not a known setting" + (f"; did you mean {near}?" if near else "."))
    return lines


def _is_missed(name: str, value: str) -> bool:
    """Whether a client does otherwise than the setting says: an empty one, or Java's own default, says nothing."""
    return bool(value.strip()) and not (name == PARTITIONER_CLASS and stock_partitioner(value) == "default")


def nearest_setting(name: str) -> str | None:
    """The known setting that looks most like a name, if any does."""
    known = sorted({*BY_DOTTED_NAME, *ENGINE_NAMES, *IDLE})
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.6)), None)
