"""Apache Kafka behind every kind of door: TLS, client certificates, an expired certificate, and all SASL mechanisms."""

import base64
import json
import time
from pathlib import Path

import pytest

from certificates import Authority
from clients.quick_groups import QUICK_GROUPS
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer
from headrace.testing.ports import free_port

USER, PASSWORD = "alice", "secret & more"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
DOORS = {"TLS": "SSL", "MUTUAL": "SSL", "EXPIRED": "SSL", "GUARDED": "SASL_SSL", "OPEN": "SASL_PLAINTEXT"}
"""Listeners and what they speak; PLAINTEXT is there too, for the broker itself."""
_MODULES = "org.apache.kafka.common.security"
_JAAS = {
    "plain": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";',
}


class GuardedPeer(KafkaPeer):
    """Apache Kafka with a listener for each door; `at` says where one is."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self.authority = authority
        self.client = authority.sign("client")
        self._ports = {door: free_port() for door in DOORS}
        spoken = ",".join(f"{door}:{protocol}" for door, protocol in DOORS.items())
        protocols = {"listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{spoken}"}
        super().__init__(directory, settings={**QUICK_GROUPS, **protocols, **_logins(), **self._certificates()})
        plain = f"PLAINTEXT://{self.bootstrap}"
        doors = ",".join([plain, *(f"{door}://{self.at(door)}" for door in DOORS)])
        self.properties.write_text(self.properties.read_text().replace(plain, doors))
        self.format_options = tuple(
            word
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for word in ("--add-scram", f'{mechanism}=[name="{USER}",password="{PASSWORD}"]')
        )

    def at(self, door: str) -> str:
        """The address of a listener."""
        return f"localhost:{self._ports[door]}"

    def _certificates(self) -> dict[str, str]:
        server, old = self.authority.sign("server"), self.authority.sign("old", is_expired=True)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(server.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": str(old.both),
        }


def _logins() -> dict[str, str]:
    found = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for door in ("guarded", "open"):
        found |= {f"listener.name.{door}.{name}.sasl.jaas.config": line for name, line in _JAAS.items()}
    return found


def token(*, subject: str = USER, lives_s: float = 3600.0) -> str:
    """A token nobody signed, which Kafka's validator for tests accepts until it has expired."""
    # Kafka's clock has milliseconds: to it, a token of this very microsecond is one of the future.
    now = int(time.time())
    claims = {"sub": subject, "iat": min(now, now + lives_s - 1), "exp": now + lives_s}
    parts = ({"alg": "none"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def guarded_peer(place: Path) -> GuardedPeer:
    """The peer, running; skipped where there is no Java or no openssl."""
    peer = GuardedPeer(place / "broker", Authority(place / "authority"))
    try:
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    return peer
