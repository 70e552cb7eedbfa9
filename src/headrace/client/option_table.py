"""Every option of the clients: kafka-python's name, which with dots for underscores is mostly Java's, and the engine's.

Options with an empty engine name are ours to serve; those in `WITHOUT_EFFECT` are taken so that programs written for
kafka-python or aiokafka run, and change nothing here; `ENGINE_NAMES` go through as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.options import PROTOCOLS

PRODUCER, CONSUMER, ADMIN = "producer", "consumer", "admin"
ALL = frozenset({PRODUCER, CONSUMER, ADMIN})
_P, _C, _PC = frozenset({PRODUCER}), frozenset({CONSUMER}), frozenset({PRODUCER, CONSUMER})
_RETRIES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOption:
    """One option."""

    name: str
    kinds: frozenset[str]
    engine: str
    """What librdkafka calls it; empty if we serve it ourselves."""
    java: str
    convert: Callable[[Any], Any]
    default: Any = None


def _addresses(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(value)


def _word(value: Any) -> str:
    return "none" if value is None else str(value).lower()


class NotOneOf(ValueError):
    """A value that is none of those an option can have."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__(f"Use one of {', '.join(choices)}.")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        word = _word(value)
        if word not in choices:
            raise NotOneOf(choices)
        return word

    return convert


def _protocol(value: Any) -> str:
    if str(value).upper() not in PROTOCOLS:
        raise NotOneOf(PROTOCOLS)
    return str(value).upper()


_ACKS = {"0": "0", "1": "1", "all": "all", "-1": "all"}


def _acks(value: Any) -> str:
    if str(value) not in _ACKS:
        raise NotOneOf(_ACKS)
    return _ACKS[str(value)]


def _retries(value: Any) -> int:
    return _RETRIES_MAX if value == math.inf else min(int(value), _RETRIES_MAX)


def _kilobytes(value: Any) -> int:
    return max(int(value) // 1024, 1)


def _hostname_check(value: Any) -> str:
    """True, False, or what Java's `ssl.endpoint.identification.algorithm` says: https, or nothing."""
    is_on = value if isinstance(value, bool) else str(value).lower() in {"https", "true"}
    return "https" if is_on else "none"


def _strategies(value: Any) -> str:
    """Names, Java classes or kafka-python's classes, as librdkafka's names."""
    given: Iterable[Any] = value.split(",") if isinstance(value, str) else value
    return ",".join(dict.fromkeys(_strategy(one) for one in given))


def _strategy(one: Any) -> str:
    text = str(getattr(one, "name", None) or getattr(one, "__name__", one)).lower()
    for sign, name in (("cooperative", "cooperative-sticky"), ("round", "roundrobin"), ("range", "range")):
        if sign in text:
            return name
    return text.strip()


_RESETS = {
    **dict.fromkeys(("none", "error"), "error"),
    **dict.fromkeys(("earliest", "smallest", "beginning"), "earliest"),
    **dict.fromkeys(("latest", "largest", "end"), "latest"),
}


def _reset(value: Any) -> str:
    if str(value).lower() not in _RESETS:
        raise NotOneOf(("earliest", "latest", "none"))
    return _RESETS[str(value).lower()]


def _same(value: Any) -> Any:
    return value


def _option(
    name: str,
    kinds: frozenset[str],
    engine: str | None = None,
    convert: Callable[[Any], Any] = _same,
    *,
    java: str = "",
    default: Any = None,
) -> ClientOption:
    dotted = name.replace("_", ".")
    return ClientOption(
        name=name,
        kinds=kinds,
        engine=dotted if engine is None else engine,
        java=java or dotted,
        convert=convert,
        default=default,
    )


_ROWS = (
    # reaching the cluster
    _option("bootstrap_servers", ALL, convert=_addresses),
    _option("client_id", ALL),
    _option("client_dns_lookup", _PC),
    _option("bootstrap_timeout_ms", ALL, "", default=10_000),
    _option("default_api_timeout_ms", ALL, "", default=60_000),
    _option("request_timeout_ms", ALL, "socket.timeout.ms", int),
    _option("metadata_max_age_ms", _PC),
    _option("retry_backoff_ms", _PC),
    _option("reconnect_backoff_ms", _PC),
    _option("reconnect_backoff_max_ms", _PC),
    _option("connections_max_idle_ms", _PC),
    _option("max_in_flight_requests_per_connection", _PC),
    _option("receive_buffer_bytes", _PC, "socket.receive.buffer.bytes"),
    _option("send_buffer_bytes", _PC, "socket.send.buffer.bytes"),
    _option("receive_message_max_bytes", _PC),
    # who we are
    _option("security_protocol", ALL, convert=_protocol),
    _option("sasl_mechanism", ALL, convert=str.upper),
    _option("sasl_username", ALL),
    _option("sasl_password", ALL),
    _option("sasl_plain_username", ALL, "sasl.username"),
    _option("sasl_plain_password", ALL, "sasl.password"),
    _option("sasl_jaas_config", ALL, ""),
    _option("sasl_oauth_token_provider", ALL, ""),
    _option("sasl_oauthbearer_token", ALL, ""),
    _option("sasl_kerberos_service_name", _PC),
    _option("ssl_cafile", ALL, "ssl.ca.location", java="ssl.truststore.location"),
    _option("ssl_ca_pem", ALL, java="ssl.truststore.certificates"),
    _option("ssl_certfile", ALL, "ssl.certificate.location"),
    _option("ssl_keyfile", ALL, "ssl.key.location"),
    _option("ssl_password", ALL, "ssl.key.password", java="ssl.key.password"),
    _option("ssl_crlfile", _PC, "ssl.crl.location"),
    _option("ssl_ciphers", _PC, "ssl.cipher.suites", java="ssl.cipher.suites"),
    _option(
        "ssl_check_hostname",
        ALL,
        "ssl.endpoint.identification.algorithm",
        _hostname_check,
        java="ssl.endpoint.identification.algorithm",
    ),
    # producers
    _option("acks", _P, convert=_acks),
    _option("compression_type", _P, convert=_one_of("none", "gzip", "snappy", "lz4", "zstd")),
    _option("retries", _P, "message.send.max.retries", _retries),
    _option("batch_size", _P),
    _option("max_batch_size", _P, "batch.size"),
    _option("linger_ms", _P),
    _option("max_request_size", _P, "message.max.bytes"),
    _option("buffer_memory", _P, "queue.buffering.max.kbytes", _kilobytes),
    _option("delivery_timeout_ms", _P),
    _option("enable_idempotence", _P),
    _option("transactional_id", _P),
    _option("transaction_timeout_ms", _P),
    _option("max_block_ms", _P, "", default=60_000),
    _option("partitioner", _P, "", default="default"),
    _option("key_serializer", _P, ""),
    _option("value_serializer", _P, ""),
    # consumers
    _option("group_id", _C),
    _option("group_instance_id", _C),
    _option("group_protocol", _C, convert=_one_of("classic", "consumer")),
    _option("group_remote_assignor", _C),
    _option("client_rack", _C),
    _option("auto_offset_reset", _C, convert=_reset),
    _option("enable_auto_commit", _C),
    _option("auto_commit_interval_ms", _C),
    _option("session_timeout_ms", _C),
    _option("heartbeat_interval_ms", _C),
    _option("max_poll_interval_ms", _C),
    _option("max_poll_records", _C, "", default=500),
    _option("partition_assignment_strategy", _C, convert=_strategies),
    _option("fetch_min_bytes", _C),
    _option("fetch_max_wait_ms", _C, "fetch.wait.max.ms"),
    _option("fetch_max_bytes", _C, convert=int),
    _option("max_partition_fetch_bytes", _C),
    _option("check_crcs", _C),
    _option("isolation_level", _C, convert=_one_of("read_uncommitted", "read_committed")),
    _option("allow_auto_create_topics", _C),
    _option("consumer_timeout_ms", _C, "", default=math.inf),
    _option("key_deserializer", _C, ""),
    _option("value_deserializer", _C, ""),
)

OPTIONS: Mapping[str, ClientOption] = {row.name: row for row in _ROWS}
BY_DOTTED_NAME: Mapping[str, ClientOption] = {row.java: row for row in _ROWS}

WITHOUT_EFFECT = frozenset(
    {
        "api_version",
        "api_version_auto_timeout_ms",
        "default_offset_commit_callback",
        "enable_incremental_fetch_sessions",
        "exclude_internal_topics",
        "kafka_client",
        "loop",
        "metric_group_prefix",
        "metric_reporters",
        "metrics_enabled",
        "metrics_num_samples",
        "metrics_sample_window_ms",
        "rebalance_timeout_ms",
        "sasl_kerberos_domain_name",
        "sasl_kerberos_name",
        "selector",
        "socket_options",
        "ssl_enabled_protocols",
        "ssl_keystore_type",
        "ssl_protocol",
        "ssl_truststore_password",
        "ssl_truststore_type",
    }
)

ENGINE_NAMES = frozenset(
    {
        "api.version.request",
        "api.version.request.timeout.ms",
        "batch.num.messages",
        "broker.address.family",
        "broker.address.ttl",
        "compression.codec",
        "compression.level",
        "connections.max.idle.ms",
        "coordinator.query.interval.ms",
        "debug",
        "delivery.report.only.error",
        "enable.gapless.guarantee",
        "enable.metrics.push",
        "enable.partition.eof",
        "enable.random.seed",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "enable.sparse.connections",
        "enable.ssl.certificate.verification",
        "fetch.error.backoff.ms",
        "fetch.message.max.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "https.ca.location",
        "https.ca.pem",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "log_level",
        "max.in.flight",
        "message.copy.max.bytes",
        "message.max.bytes",
        "message.send.max.retries",
        "message.timeout.ms",
        "metadata.broker.list",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "oauth_cb",
        "plugin.library.paths",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "queuing.strategy",
        "reconnect.backoff.jitter.ms",
        "request.required.acks",
        "retry.backoff.max.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal",
        "sasl.mechanisms",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "share.acknowledgement.mode",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "ssl.ca.certificate.stores",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.providers",
        "ssl.sigalgs.list",
        "statistics.interval.ms",
        "sticky.partitioning.linger.ms",
        "test.mock.num.brokers",
        "topic.blacklist",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)
