"""What failures of TLS are called, without a socket; the real ones are in tests/clients."""

import ssl

import pytest

from headrace.client.encryption import is_refusal, strange_length, tls_context, tls_fault
from headrace.client.fault import BadOption, NoBroker, NotAuthenticated
from headrace.client.options import connection_options


def verification(code, message):
    """A certificate that was not accepted."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (verification(10, "certificate has expired"), NotAuthenticated, "has expired. The broker needs a new one"),
        (verification(20, "unable to get issuer"), NotAuthenticated, "Name the authority"),
        (verification(62, "Hostname mismatch"), NotAuthenticated, "ssl_check_hostname"),
        (verification(99, "odd"), NotAuthenticated, "odd. Check ssl_cafile"),
        (ssl.SSLError(1, "sslv3 alert bad certificate"), NotAuthenticated, "does not accept our certificate"),
        (ssl.SSLError(1, "wrong version number"), NotAuthenticated, "Does this port speak TLS"),
        (ssl.SSLEOFError(8, "EOF occurred"), NoBroker, "instead of beginning TLS"),
        (ConnectionResetError(104, "Connection reset by peer"), NoBroker, "instead of beginning TLS"),
    ],
)
def test_faults(error, kind, sentence):
    """Does each failure say whose fault it is, and what to do?"""
    found = tls_fault("b:1", error)

    assert isinstance(found, kind)
    assert sentence in str(found)


def test_refusals():
    """Is a lost connection told from a certificate that is refused?"""
    assert is_refusal(ssl.SSLError(1, "tlsv13 alert certificate required"))
    assert is_refusal(ssl.SSLError(1, "tlsv1 alert unknown ca"))
    assert not is_refusal(ssl.SSLError(1, "tlsv1 alert internal error"))
    assert not is_refusal(ssl.SSLEOFError(8, "EOF occurred in violation of protocol"))


def test_strange_lengths():
    """Is an answer in TLS recognized by its first bytes?"""
    assert "answers in TLS" in str(strange_length("b:1", int.from_bytes(b"\x15\x03\x03\x00")))
    assert "Kafka's protocol" in str(strange_length("b:1", int.from_bytes(b"HTTP")))


@pytest.mark.parametrize("option", ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"])
def test_files(option, tmp_path):
    """Is a file that is not there, or holds something else, refused by name?"""
    (tmp_path / "other").write_bytes(b"\x30\x82")
    for name, sentence in (("nowhere", "cannot be read"), ("other", "is not in PEM form")):
        options = connection_options("b:1", {"security.protocol": "SSL", option: str(tmp_path / name)})
        with pytest.raises(BadOption, match=rf"{name} {sentence}"):
            tls_context(options)


def test_empty_pem(tmp_path):
    """Is a PEM file without a certificate in it refused?"""
    file = tmp_path / "key.pem"
    file.write_text("-----BEGIN RUBBISH-----\n-----END RUBBISH-----\n")
    with pytest.raises(BadOption, match="holds no certificate"):
        tls_context(connection_options("b:1", {"security.protocol": "SSL", "ssl.ca.location": str(file)}))
