"""Certificates of the test's own, made by openssl: an authority, what it signed, and what nobody should trust."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_TIMEOUT_S = 60
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
# Times as openssl writes them: nobody waits for a certificate to expire.
_PAST = ("200101000000Z", "200201000000Z")
_PRESENT = ("200101000000Z", "491231000000Z")
KEY_PASSWORD = "open sesame"


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, in files apart and in one."""

    certificate: Path
    key: Path

    @property
    def both(self) -> Path:
        """One file with key and certificate, which Java calls a key store of type PEM."""
        return self.certificate.with_suffix(".both.pem")


class Authority:
    """Who signs certificates; a second one is a stranger to those who trust the first."""

    def __init__(self, place: Path) -> None:
        """Skips the test where there is no openssl."""
        if shutil.which("openssl") is None:
            pytest.skip("no openssl to make certificates with")
        self._place = place
        place.mkdir(parents=True)
        for name in ("index", "index.attr"):
            (place / name).touch()
        (place / "serial").write_text("01\n")
        (place / "ca.conf").write_text(_CONFIGURATION.format(place=place))
        self.file = place / "authority.pem"
        self._key = place / "authority.key"
        self._openssl("req", "-x509", *_new_key(self._key), "-out", self.file, "-subj", f"/CN={place.name}", "-days", 2)

    def sign(self, name: str, *, is_expired: bool = False) -> Identity:
        """A certificate for localhost, of today or long ago."""
        made = Identity(self._place / f"{name}.pem", self._place / f"{name}.key")
        request, names = self._place / f"{name}.request", self._place / f"{name}.names"
        names.write_text(_NAMES)
        start, end = _PAST if is_expired else _PRESENT
        self._openssl("req", *_new_key(made.key), "-out", request, "-subj", f"/CN={name}")
        self._openssl(
            *("ca", "-batch", "-notext", "-config", self._place / "ca.conf"),
            *("-cert", self.file, "-keyfile", self._key, "-in", request, "-out", made.certificate),
            *("-startdate", start, "-enddate", end, "-extfile", names),
        )
        made.both.write_text(made.key.read_text() + made.certificate.read_text())
        return made

    def locked(self, identity: Identity) -> Path:
        """The key once more, with KEY_PASSWORD on it."""
        locked = identity.key.with_suffix(".locked.key")
        self._openssl("pkcs8", "-topk8", "-in", identity.key, "-out", locked, "-passout", f"pass:{KEY_PASSWORD}")
        return locked

    def store(self) -> Path:
        """The authority as Java keeps it by default: a file that is no PEM."""
        store = self._place / "authority.p12"
        words = ("-export", "-nokeys", "-in", self.file, "-out", store, "-passout", f"pass:{KEY_PASSWORD}")
        self._openssl("pkcs12", *words)
        return store

    def _openssl(self, *words: object) -> None:
        done = subprocess.run(
            ["openssl", *map(str, words)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        assert 0 == done.returncode, done.stderr


def _new_key(key: Path) -> tuple[object, ...]:
    """Elliptic curves: an RSA key takes a noticeable while."""
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key)


_CONFIGURATION = """\
[ca]
default_ca = here
[here]
new_certs_dir = {place}
database = {place}/index
serial = {place}/serial
default_md = sha256
policy = anything
unique_subject = no
[anything]
commonName = supplied
"""
