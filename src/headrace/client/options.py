"""How to reach a cluster, in the option names of Kafka's Java clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.client.fault import ClientFault

PORT_DEFAULT = 9092
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_FILES = {
    "ssl_cafile": ("ssl.ca.location", "ssl.truststore.location"),
    "ssl_certfile": ("ssl.certificate.location", "ssl.keystore.location"),
    "ssl_keyfile": ("ssl.key.location", "ssl.keystore.location"),
}
"""What settings name a file, the ones that count first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """What the wire client needs to know; everything else in a client's properties is for other clients."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "headrace"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    sasl_token: str = field(default="", repr=False)
    token_source: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    """Gives a token for each new connection, where there is none that stays."""
    ssl_ca_file: str = ""
    ssl_ca_pem: str = field(default="", repr=False)
    ssl_certificate_file: str = ""
    ssl_key_file: str = ""
    ssl_key_password: str = field(default="", repr=False)
    ssl_check_hostname: bool = True
    called: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What the person calls `ssl_cafile`, `ssl_certfile` and `ssl_keyfile`."""
    connect_timeout_s: float = 5.0
    request_timeout_s: float = 30.0

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether we say who we are."""
        return self.security_protocol.startswith("SASL")

    @property
    def mechanism(self) -> str:
        """How we prove who we are."""
        has_token = self.sasl_token or self.token_source is not None
        return self.sasl_mechanism or ("OAUTHBEARER" if has_token else "PLAIN")


def connection_options(bootstrap: str, properties: Mapping[str, str] | None = None) -> ConnectionOptions:
    """Read the options out of `host:port,host:port` and Java-style properties."""
    given = dict(properties or {})
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ClientFault(f"security.protocol={protocol} is unknown", f"Use one of {', '.join(PROTOCOLS)}.")
    username, password = jaas_login(given.get("sasl.jaas.config", ""))
    return ConnectionOptions(
        bootstrap=parse_addresses(bootstrap or given.get("bootstrap.servers", "")),
        client_id=given.get("client.id", "headrace"),
        security_protocol=protocol,
        sasl_mechanism=given.get("sasl.mechanism", given.get("sasl.mechanisms", "")).upper(),
        sasl_username=given.get("sasl.username", username),
        sasl_password=given.get("sasl.password", password),
        sasl_token=given.get("sasl.oauthbearer.token", ""),
        ssl_ca_file=given.get("ssl.ca.location", given.get("ssl.truststore.location", "")),
        ssl_ca_pem=given.get("ssl.ca.pem", given.get("ssl.truststore.certificates", "")),
        ssl_certificate_file=given.get("ssl.certificate.location", given.get("ssl.keystore.location", "")),
        ssl_key_file=given.get("ssl.key.location", given.get("ssl.keystore.location", "")),
        ssl_key_password=given.get("ssl.key.password", ""),
        called={name: next(filter(given.__contains__, names), name) for name, names in _FILES.items()},
        ssl_check_hostname=given.get("ssl.endpoint.identification.algorithm", "https").lower() == "https",
        request_timeout_s=_milliseconds(given, "request.timeout.ms", 30_000),
        connect_timeout_s=_milliseconds(given, "socket.connection.setup.timeout.ms", 5_000),
    )


def parse_addresses(text: str) -> tuple[tuple[str, int], ...]:
    """`host:port,host:port` as pairs; [::1]:9092 for IPv6; the port may be left out."""
    found = tuple(_parse_address(part.strip()) for part in text.split(",") if part.strip())
    if not found:
        raise ClientFault("No bootstrap server is given", "Say where a broker is: --bootstrap-server localhost:9092.")
    return found


def _parse_address(text: str) -> tuple[str, int]:
    bare = text.split("://", 1)[-1]
    host, colon, port = bare.rpartition(":")
    if not colon or bare.endswith("]"):
        host, port = bare, str(PORT_DEFAULT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClientFault(f"'{text}' is not a broker's address", "Write host:port, for instance localhost:9092.")
    return host, int(port)


def _milliseconds(given: Mapping[str, str], name: str, default_ms: int) -> float:
    text = given.get(name, str(default_ms))
    try:
        value = int(text)
    except ValueError:
        raise ClientFault(f"{name}={text} is not a number", "Give milliseconds.") from None
    return max(value, 1) / 1000


def jaas_login(text: str) -> tuple[str, str]:
    """The user name and password in a `sasl.jaas.config` line, as Java's clients write it."""
    found = {}
    for name in ("username", "password"):
        _, sign, rest = text.partition(f"{name}=")
        if sign:
            quote = rest[:1] if rest[:1] in {'"', "'"} else ""
            value = rest[1:].split(quote, 1)[0] if quote else rest.split(None, 1)[0].rstrip(";")
            found[name] = value
    return found.get("username", ""), found.get("password", "")
