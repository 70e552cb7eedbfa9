"""TLS as the options say, and what its failures mean: whose certificate is wrong, and what to do about it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client.fault import BadOption, ClientFault, ConnectionEnded, NoBroker, NotAuthenticated

if TYPE_CHECKING:
    from headrace.client.options import ConnectionOptions

# How TLS begins to complain about what is no TLS.
_ALERT_RECORD = 0x1503
PEM_MARK = b"-----BEGIN "
_CA, _CERTIFICATE, _KEY = "ssl_cafile", "ssl_certfile", "ssl_keyfile"
_EXPORT = "Java's key stores can be written as PEM: openssl pkcs12 -in STORE.p12 -out FILE.pem -nodes."
_STORE_MARK = bytes.fromhex("feedfeed")
_CONVERT = "Convert it: keytool -importkeystore -srckeystore STORE.jks -destkeystore STORE.p12 -deststoretype pkcs12."
# OpenSSL's numbers of what is wrong with a certificate.
_REMEDIES = {
    9: "Its time has not come yet: is the clock of this machine right?",
    10: "The broker needs a new one; or is the clock of this machine wrong?",
    **dict.fromkeys((2, 18, 19, 20, 21), "Name the authority that signed it: ssl_cafile, or ssl.ca.location."),
    **dict.fromkeys((62, 64), "Use the name it was made for, or set ssl_check_hostname=False."),
}
_CHECK_CA = "Check ssl_cafile, or ssl.ca.location."
_OUR_CERTIFICATE = "Give one that it trusts and that has not expired: ssl_certfile and ssl_keyfile."
WRONG_DOOR = "Does it want another security_protocol there? See its log for why."
_NO_TLS = "Does this port speak TLS? Check security_protocol and the port."


def tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """How to encrypt; BadOption if a file that is named cannot be used."""
    check_pem(_called(options, _CA), options.ssl_ca_file)
    check_pem(_called(options, _CERTIFICATE), options.ssl_certificate_file)
    check_pem(_called(options, _KEY), options.ssl_key_file)
    try:
        context = ssl.create_default_context(cafile=options.ssl_ca_file or None, cadata=options.ssl_ca_pem or None)
    except ssl.SSLError as error:
        problem = f"{_called(options, _CA)}={options.ssl_ca_file} holds no certificate: {words_of(error)}"
        raise BadOption(problem, _CHECK_CA) from None
    context.check_hostname = options.ssl_check_hostname
    if options.ssl_certificate_file:
        _load_own(context, options)
    return context


def _called(options: ConnectionOptions, name: str) -> str:
    return options.called.get(name, name)


def _load_own(context: ssl.SSLContext, options: ConnectionOptions) -> None:
    certificate, key = options.ssl_certificate_file, options.ssl_key_file or None
    try:
        # Asked only for a key that has a password; without this, OpenSSL would ask at the terminal and wait.
        context.load_cert_chain(certificate, key, lambda: options.ssl_key_password)
    except ssl.SSLError as error:
        names = _called(options, _CERTIFICATE), _called(options, _KEY)
        problem = f"{names[0]}={certificate} and {names[1]}={key or certificate} cannot be used: {words_of(error)}"
        raise BadOption(problem, "Does the key belong to the certificate, and is ssl_password its password?") from None


def check_pem(option: str, file: str) -> None:
    """BadOption if a file is named that is not there, or that is not PEM."""
    if not file:
        return
    try:
        is_text = is_pem(file)
    except OSError as error:
        raise BadOption(f"{option}={file} cannot be read: {error.strerror}") from None
    if not is_text:
        raise BadOption(f"{option}={file} is not in PEM form", _EXPORT)


def check_store(file: str) -> None:
    """BadOption if a key store has the form that only Java reads."""
    if Path(file).read_bytes().startswith(_STORE_MARK):
        raise BadOption(f"ssl.keystore.location={file} is a key store of type JKS, which only Java reads", _CONVERT)


def is_pem(file: str) -> bool:
    """Whether certificates or keys stand in a file as text."""
    return PEM_MARK in Path(file).read_bytes()


def tls_fault(where: str, error: OSError) -> ClientFault:
    """What ended a TLS connection before the first word was said."""
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = _REMEDIES.get(error.verify_code, _CHECK_CA)
        reason = error.verify_message.rstrip(".")
        return NotAuthenticated(f"The certificate of {where} is not accepted: {reason}", remedy)
    words = words_of(error)
    if is_refusal(error):
        return certificate_refused(where, words)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return NotAuthenticated(f"No TLS connection to {where}: {words}", _NO_TLS)
    return NoBroker(f"{where} ended the connection instead of beginning TLS", _NO_TLS)


def certificate_refused(where: str, words: str) -> NotAuthenticated:
    """The other side does not know who we are by our certificate."""
    return NotAuthenticated(f"{where} does not accept our certificate, or wants one: {words}", _OUR_CERTIFICATE)


def strange_length(where: str, size: int) -> ConnectionEnded:
    """What came cannot be the length of an answer."""
    if size >> 16 == _ALERT_RECORD:
        return ConnectionEnded(f"{where} answers in TLS", "Set security_protocol to SSL, or SASL_SSL.")
    return ConnectionEnded(f"{where} sent {size} as the length of an answer", "Does it speak Kafka's protocol?")


def is_refusal(error: OSError) -> bool:
    """Whether the other side says that our certificate will not do, or that it wants one."""
    words = words_of(error)
    return "alert" in words and any(sign in words for sign in ("certificate", "unknown ca"))


def words_of(error: OSError) -> str:
    """OpenSSL's reason as words."""
    reason = getattr(error, "reason", None) or error.strerror or str(error) or type(error).__name__
    return str(reason).replace("_", " ").lower()
